/** Characters that may wait for the end of the turn. */
const maxChars = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop at once. A write for each line costs as much as making the line, and a
 * busy server makes dozens in a turn. A crash of Node itself, such as by SIGKILL, loses the lines of that turn.
 */
export class LineBuffer {
  readonly #write: (text: string) => void;
  #text = '';
  #turn: NodeJS.Immediate | undefined;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  write(line: string): void {
    this.#text += line;
    if (this.#text.length > maxChars) this.flush();
    else this.#turn ??= setImmediate(this.flush);
  }

  readonly flush = (): void => {
    clearImmediate(this.#turn);
    this.#turn = undefined;
    const text = this.#text;
    this.#text = '';
    if (text !== '') this.#write(text);
  };
}
