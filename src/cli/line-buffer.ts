/** Milliseconds, and characters, for which lines may wait. */
const [maxWait, maxChars] = [10, 64 * 1024];

/**
 * Writes the lines of some milliseconds at once. A write costs more than making a line, and a busy server makes few lines
 * in a turn of the event loop. A crash of Node itself, such as by SIGKILL, loses the lines that wait.
 */
export class LineBuffer {
  readonly #write: (text: string) => void;
  #text = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  write(line: string): void {
    this.#text += line;
    if (this.#text.length > maxChars) this.flush();
    else this.#timer ??= setTimeout(this.flush, maxWait);
  }

  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#text;
    this.#text = '';
    if (text !== '') this.#write(text);
  };
}
