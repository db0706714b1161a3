import { on } from 'node:events';
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { oneLine, redactCredentials, sanitize, sanitizedJson } from './sanitize.ts';

export type Style = 'dim' | 'bold' | 'red' | 'yellow' | 'cyan';

/** Resolves to a line, or to undefined after Ctrl-D or when the prompt is aborted. */
export type ReadLine = (prompt: string) => Promise<string | undefined>;

/**
 * All output of the program. Control characters are removed from everything that is printed. The run's answer goes to
 * stdout, so that a pipe carries nothing else; notes and errors go to stderr. On a terminal, a note begins on a new line.
 */
export class Terminal {
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;
  /** The text printed last on stdout, and on the terminal that stdout and stderr share. */
  #lastAnswer = '\n';
  #lastShared = '\n';

  constructor(out: NodeJS.WriteStream = process.stdout, err: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
    this.#err = err;
  }

  /** Whether prompts are possible: stdin and stderr are a terminal. */
  get interactive(): boolean {
    return process.stdin.isTTY && this.#err.isTTY;
  }

  /** Characters per line of stdout; Infinity if it is not a terminal. */
  get width(): number {
    return this.#out.isTTY && this.#out.columns > 0 ? this.#out.columns : Number.POSITIVE_INFINITY;
  }

  /** Calls back when the reader of stdout has closed the pipe, as `| head` does. */
  onOutputClosed(callback: () => void): void {
    this.#out.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      callback();
    });
  }

  /** Prints text of the answer. A pipe gets it unchanged: there it is data. */
  answer(text: string): void {
    if (text === '') return;
    this.#out.write(this.#out.isTTY ? sanitize(text) : text);
    this.#lastAnswer = text;
    this.#lastShared = text;
  }

  /** Ends the current line of the answer. */
  endLine(): void {
    if (!this.#lastAnswer.endsWith('\n')) this.answer('\n');
  }

  /** Prints a value as a line of JSON on stdout. */
  json(value: unknown): void {
    this.answer(`${sanitizedJson(value)}\n`);
  }

  /** Prints lines on stdout, for people. */
  print(text: string, style?: Style): void {
    this.#out.write(`${styled(sanitize(text), style, this.#out)}\n`);
  }

  /** Prints lines on stderr. Colours are used on terminals only; NO_COLOR and FORCE_COLOR are honoured. */
  note(text: string, style: Style = 'dim'): void {
    this.#printError(text, style);
  }

  /** Prints an error on stderr. */
  error(text: string): void {
    this.#printError(text);
  }

  /** Prints a mark directly after the answer's text, if stdout and stderr are the same terminal. */
  mark(text: string): void {
    if (this.#out.isTTY && this.#err.isTTY) this.#err.write(styled(sanitize(text), 'dim', this.#err));
  }

  /** The next note begins a new line, because the current one has a prompt or the ^C that the terminal prints. */
  leavePromptLine(): void {
    this.#lastShared = '';
  }

  /** Calls `work` with a function that reads lines from the terminal; the prompts go to stderr. Ctrl-C stays a signal. */
  async withPrompt<T>(signal: AbortSignal, work: (readLine: ReadLine) => Promise<T>): Promise<T> {
    const lines = createInterface({ input: process.stdin, output: this.#err });
    // readline catches Ctrl-C; pass it on as a signal.
    lines.on('SIGINT', () => process.emit('SIGINT'));
    // Buffers lines that are typed or pasted before their prompt.
    const typed = on(lines, 'line', { signal, close: ['close'] });
    const readLine: ReadLine = async (prompt) => {
      try {
        lines.setPrompt(oneLine(prompt));
        lines.prompt();
        return (await typed.next()).value?.[0];
      } catch {
        // The prompt was aborted, or Ctrl-D came before it.
        return undefined;
      }
    };
    try {
      return await work(readLine);
    } finally {
      lines.close();
    }
  }

  #printError(text: string, style?: Style): void {
    if (this.#out.isTTY && this.#err.isTTY && !this.#lastShared.endsWith('\n')) this.#err.write('\n');
    this.#err.write(`${styled(redactCredentials(sanitize(text)), style, this.#err)}\n`);
    this.#lastShared = '\n';
  }
}

const styled = (text: string, style: Style | undefined, stream: NodeJS.WriteStream): string =>
  style === undefined ? text : styleText(style, text, { stream });

export const terminal = new Terminal();
