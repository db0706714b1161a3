const slabBytes = 64 * 1024;
/** A longer text gets bytes of its own, so that little of a slab is left over. */
const longBytes = slabBytes / 4;

/** Where a text lies. */
export interface Place {
  readonly slab: Buffer;
  readonly start: number;
  readonly end: number;
}

/**
 * Texts as bytes outside of V8's heap, next to each other in slabs: a Buffer for each would cost some microseconds, and
 * a hundred bytes of heap. A slab is freed with the last of its texts; those of a time lie together, and go together.
 */
export class Arena {
  #slab = Buffer.alloc(0);
  #used = 0;

  put(text: string): Place {
    const size = Buffer.byteLength(text);
    const isLong = size > longBytes;
    if (!isLong && this.#used + size > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#used = 0;
    }
    const slab = isLong ? Buffer.allocUnsafeSlow(size) : this.#slab;
    const start = isLong ? 0 : this.#used;
    // What has as many bytes as characters is ASCII, which is cheaper to write as such.
    slab.write(text, start, size === text.length ? 'latin1' : 'utf8');
    if (!isLong) this.#used += size;
    return { slab, start, end: start + size };
  }

  read({ slab, start, end }: Place): string {
    return slab.toString('utf8', start, end);
  }
}
