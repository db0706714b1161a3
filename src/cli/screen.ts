import { styleText } from 'node:util';

export type Style = 'dim' | 'bold' | 'red' | 'yellow' | 'cyan';

/** What an agent says must not move the cursor, ring the bell or rename the window: all controls but these two. */
const controls = /[^\P{Cc}\n\t]/gu;

/**
 * The answer goes to stdout, so that pipes carry nothing else; all the rest goes to stderr.
 * On a terminal both meet, and a note begins on a line of its own.
 */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;
  /** What was printed last, on stdout and, where both are a terminal, on it. */
  #answer = '\n';
  #line = '\n';

  constructor(out: NodeJS.WriteStream = process.stdout, err: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
    this.#err = err;
  }

  /** Whether there is somebody to ask. */
  get interactive(): boolean {
    return process.stdin.isTTY && this.#err.isTTY;
  }

  /** Text of the answer, as it comes; on a terminal without control characters. */
  answer(text: string): void {
    if (text === '') return;
    this.#out.write(this.#out.isTTY ? text.replace(controls, '') : text);
    this.#answer = text;
    this.#line = text;
  }

  /** Ends the line of the answer that is open. */
  endLine(): void {
    if (!this.#answer.endsWith('\n')) this.answer('\n');
  }

  /** A line beside the answer. Colours are for terminals; NO_COLOR and FORCE_COLOR are honoured. */
  note(text: string, style: Style = 'dim'): void {
    this.#freshLine();
    this.#err.write(`${styleText(style, text.replace(controls, ''), { stream: this.#err })}\n`);
    this.#line = '\n';
  }

  /** A mark right behind the answer's text, where the two meet. */
  mark(text: string): void {
    if (this.#out.isTTY && this.#err.isTTY) this.#err.write(styleText('dim', text, { stream: this.#err }));
  }

  /** The terminal's line is somebody else's now: of a prompt that was left, or of the ^C that it shows. */
  disturbed(): void {
    this.#line = '';
  }

  #freshLine(): void {
    if (this.#out.isTTY && this.#err.isTTY && !this.#line.endsWith('\n')) this.#err.write('\n');
  }
}
