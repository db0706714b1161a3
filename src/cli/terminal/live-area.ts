import stringWidth from 'string-width';
import { sanitizePainted } from './format.ts';

/** What is drawn: lines that fit the width. `moves` asks for another frame soon, for a spinner. */
export interface Frame {
  /** Final lines, to be printed once above the area. */
  readonly above: readonly string[];
  readonly lines: readonly string[];
  readonly moves: boolean;
}

/** Milliseconds between two frames. Tokens that arrive in between are drawn together. */
const frameTime = 60;

/** Lines at the end of a terminal that are drawn again when they change. What is final is printed above them. */
export class LiveArea {
  readonly #out: NodeJS.WriteStream;
  readonly #render: (columns: number) => Frame;
  #drawn: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(out: NodeJS.WriteStream, render: (columns: number) => Frame) {
    this.#out = out;
    this.#render = render;
  }

  /** Draws the next frame soon. */
  changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, frameTime);
  }

  /** Calls back to print whole lines above the area. */
  above(print: () => void): void {
    this.#erase();
    print();
    this.changed();
  }

  /** Removes the area from the screen. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#erase();
  }

  #draw(): void {
    const { columns, rows } = sizeOf(this.#out);
    const { above, lines, moves } = this.#render(columns);
    if (above.length > 0) {
      this.#erase();
      this.#out.write(`${sanitizePainted(above.join('\n'))}\n`);
    }
    // Lines that have left the screen cannot be erased, so only the last ones are drawn.
    const shown = lines.slice(-Math.max(rows - 2, 1));
    if (shown.join('\n') !== this.#drawn.join('\n')) {
      this.#erase();
      this.#out.write(sanitizePainted(shown.join('\n')));
      this.#drawn = shown;
    }
    if (moves) this.changed();
  }

  // A terminal that has become narrower has wrapped the lines.
  #erase(): void {
    if (this.#drawn.length === 0) return;
    const { columns } = sizeOf(this.#out);
    const height = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / columns)), 0);
    this.#out.write(`${height > 1 ? `\u001b[${height - 1}A` : ''}\r\u001b[J`);
    this.#drawn = [];
  }
}

/** Some terminals, such as those of tests, do not tell their size. */
const sizeOf = ({ columns, rows }: NodeJS.WriteStream): { columns: number; rows: number } => ({
  columns: columns || 80,
  rows: rows || 24,
});
