import { on } from 'node:events';
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { oneLine, printable, printableJson, withoutPasswords } from './printable.ts';

export type Style = 'dim' | 'bold' | 'red' | 'yellow' | 'cyan';

/** Resolves to a line, or undefined where there will be none: after Ctrl-D, or when the question is withdrawn. */
export type ReadLine = (prompt: string) => Promise<string | undefined>;

/**
 * The only way from this program to the terminal: everything that is printed goes through here, and loses what could
 * control the terminal. The answer goes to stdout, so that pipes carry nothing else; everything beside it goes to stderr.
 * On a terminal both meet, and a note begins on a line of its own.
 */
export class Terminal {
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;
  /** What was printed last, on stdout and, where both are a terminal, on it. */
  #answer = '\n';
  #line = '\n';

  constructor(out: NodeJS.WriteStream = process.stdout, err: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
    this.#err = err;
  }

  /** Whether questions can be asked. */
  get interactive(): boolean {
    return process.stdin.isTTY && this.#err.isTTY;
  }

  /** Characters of a line on stdout; Infinity where it is no terminal. */
  get width(): number {
    return this.#out.isTTY && this.#out.columns > 0 ? this.#out.columns : Number.POSITIVE_INFINITY;
  }

  /** Calls back when stdout has no reader any more, as after `| head`. */
  whenUnread(callback: () => void): void {
    this.#out.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      callback();
    });
  }

  /** Text of the answer, as it comes. A pipe gets it as it is, because it is data there. */
  answer(text: string): void {
    if (text === '') return;
    this.#out.write(this.#out.isTTY ? printable(text) : text);
    this.#answer = text;
    this.#line = text;
  }

  /** Ends the line of the answer that is open. */
  endLine(): void {
    if (!this.#answer.endsWith('\n')) this.answer('\n');
  }

  /** A value on stdout, as a line of JSON. */
  json(value: unknown): void {
    this.answer(`${printableJson(value)}\n`);
  }

  /** Lines on stdout, for people. */
  print(text: string, style?: Style): void {
    this.#out.write(`${styled(printable(text), style, this.#out)}\n`);
  }

  /** Lines beside the answer. Colours are for terminals; NO_COLOR and FORCE_COLOR are honoured. */
  note(text: string, style: Style = 'dim'): void {
    this.#beside(text, style);
  }

  /** What is wrong, on stderr. */
  error(text: string): void {
    this.#beside(text);
  }

  /** A mark right behind the answer's text, where the two meet. */
  mark(text: string): void {
    if (this.#out.isTTY && this.#err.isTTY) this.#err.write(styled(printable(text), 'dim', this.#err));
  }

  /** Something else has written to the line: a prompt that was left, or the ^C that the terminal shows. */
  disturbed(): void {
    this.#line = '';
  }

  /** Reads lines from the terminal; the prompts go to stderr. Ctrl-C means there what it means elsewhere. */
  async prompting<T>(signal: AbortSignal, work: (read: ReadLine) => Promise<T>): Promise<T> {
    const lines = createInterface({ input: process.stdin, output: this.#err });
    // Reading lines keeps Ctrl-C from becoming a signal.
    lines.on('SIGINT', () => process.emit('SIGINT'));
    // What is typed, or pasted, before it is asked for waits here.
    const typed = on(lines, 'line', { signal, close: ['close'] });
    const read: ReadLine = async (prompt) => {
      try {
        lines.setPrompt(oneLine(prompt));
        lines.prompt();
        return (await typed.next()).value?.[0];
      } catch {
        // The question was withdrawn, or Ctrl-D came before it.
        return undefined;
      }
    };
    try {
      return await work(read);
    } finally {
      lines.close();
    }
  }

  #beside(text: string, style?: Style): void {
    if (this.#out.isTTY && this.#err.isTTY && !this.#line.endsWith('\n')) this.#err.write('\n');
    this.#err.write(`${styled(withoutPasswords(printable(text)), style, this.#err)}\n`);
    this.#line = '\n';
  }
}

const styled = (text: string, style: Style | undefined, stream: NodeJS.WriteStream): string =>
  style === undefined ? text : styleText(style, text, { stream });

export const terminal = new Terminal();
