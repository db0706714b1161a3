/** Milliseconds, and bytes, for which lines may wait. */
const [maxWait, size] = [10, 64 * 1024];
/** Bytes of a character of a text in UTF-8, at most. */
const bytesOfChar = 3;
/** How a warning begins, and what is worse. */
const warning = /^\{"level":[4-6]/;

/**
 * Writes the lines of some milliseconds at once. A write costs more than making a line, and a busy server makes few lines
 * in a turn of the event loop. Lines wait as bytes: V8 would copy texts that wait, with all their pieces, before it collects
 * them. A crash of Node itself, such as by SIGKILL, loses the lines that wait. A warning does not wait, as what it warns of may
 * end the process.
 */
export class LineBuffer {
  readonly #write: (bytes: Buffer) => void;
  readonly #bytes = Buffer.allocUnsafeSlow(size);
  #length = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write;
  }

  write(line: string): void {
    const most = line.length * bytesOfChar;
    if (this.#length + most > size) this.flush();
    if (most > size) {
      this.#write(Buffer.from(line));
    } else {
      this.#length += this.#bytes.write(line, this.#length);
      if (warning.test(line)) this.flush();
      else this.#timer ??= setTimeout(this.flush, maxWait);
    }
  }

  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A copy: what writes it may do so later.
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    if (bytes.length > 0) this.#write(bytes);
  };
}
