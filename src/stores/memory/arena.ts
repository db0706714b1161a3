const slabBytes = 64 * 1024;
/** A longer text gets a buffer of its own, so that little space at the end of a slab stays unused. */
const longBytes = slabBytes / 4;

/** The position of a text in the arena. */
export interface Slice {
  readonly slab: Buffer;
  readonly start: number;
  readonly end: number;
}

/**
 * Stores texts as bytes outside of V8's heap, next to each other in slabs: a Buffer for each would cost microseconds,
 * and a hundred bytes of heap. A slab is freed with the last of its texts. Texts of the same time share slabs, and are
 * usually deleted together.
 */
export class Arena {
  #slab = Buffer.alloc(0);
  #used = 0;

  put(text: string): Slice {
    const size = Buffer.byteLength(text);
    const isLong = size > longBytes;
    if (!isLong && this.#used + size > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#used = 0;
    }
    const slab = isLong ? Buffer.allocUnsafeSlow(size) : this.#slab;
    const start = isLong ? 0 : this.#used;
    // A text with as many bytes as characters is ASCII, for which 'latin1' is the cheaper encoding.
    slab.write(text, start, size === text.length ? 'latin1' : 'utf8');
    if (!isLong) this.#used += size;
    return { slab, start, end: start + size };
  }

  read({ slab, start, end }: Slice): string {
    return slab.toString('utf8', start, end);
  }
}
