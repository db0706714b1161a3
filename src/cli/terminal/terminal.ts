import { on } from 'node:events';
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { oneLine, redactCredentials, sanitize, sanitizedJson, sanitizePainted } from './format.ts';
import type { LiveArea } from './live-area.ts';

export type Style = 'dim' | 'bold' | 'italic' | 'underline' | 'strikethrough' | 'red' | 'green' | 'yellow' | 'cyan';

/** Resolves to a line, or to undefined after Ctrl-D or when the prompt is aborted. */
export type ReadLine = (prompt: string) => Promise<string | undefined>;

/** What was typed as a message; `closed` after Ctrl-D, `interrupted` after Ctrl-C. */
export type Typed = { readonly text: string } | 'closed' | 'interrupted';

const bracketedPaste = { on: '\u001b[?2004h', off: '\u001b[?2004l' };

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
  #live: LiveArea | undefined;
  #outlivesOutput = false;

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

  /** Whether the process is at a terminal: with any of its standard streams. */
  get isAttached(): boolean {
    return [process.stdin, this.#out, this.#err].some(({ isTTY }) => isTTY);
  }

  /** Whether stdout is a terminal. */
  get isTerminal(): boolean {
    return this.#out.isTTY === true;
  }

  /** Whether stdout is a terminal with colours: Markdown is rendered, and lines are drawn again in place. */
  get rich(): boolean {
    return hasColours(this.#out);
  }

  /** Whether stdout and stderr are both terminals, so that notes stand between the lines of the answer. */
  get shared(): boolean {
    return this.#out.isTTY && this.#err.isTTY;
  }

  /** The text without control characters, in styles that stdout can show. */
  readonly paint = (text: string, ...styles: Style[]): string => {
    const safe = sanitize(text).replaceAll('\t', '    ');
    return styles.length === 0 ? safe : styleText(styles, safe, { stream: this.#out });
  };

  /**
   * Opens the area at the end of the terminal whose lines change; undefined if neither stdout nor stderr is a terminal
   * with colours. The caller makes it, so that a server does not load how, and closes it.
   */
  openLive(make: (out: NodeJS.WriteStream) => LiveArea): LiveArea | undefined {
    const out = [this.#out, this.#err].find(hasColours);
    this.#live = out && make(out);
    return this.#live;
  }

  closeLive(): void {
    this.#live?.close();
    this.#live = undefined;
  }

  /** Prints lines on stdout that `paint` has made. */
  painted(lines: readonly string[]): void {
    if (lines.length > 0) this.#above(() => this.#out.write(`${sanitizePainted(lines.join('\n'))}\n`));
  }

  /**
   * Calls back when stdout is closed: its reader has closed the pipe, as `| head` does, or the terminal is gone. Not where the
   * program outlives that. A closed stderr is ignored: an error of it could only be reported to itself.
   */
  onOutputClosed(callback: () => void): void {
    const onClosed = (closed: () => void) => (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      closed();
    };
    this.#out.on(
      'error',
      onClosed(() => {
        if (!this.#outlivesOutput) callback();
      }),
    );
    this.#err.on(
      'error',
      onClosed(() => {}),
    );
  }

  /** The program goes on without a reader of stdout: a server outlives the program that reads its log. */
  outliveOutput(): void {
    this.#outlivesOutput = true;
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

  /** Prints lines of the log on stdout, in UTF-8. */
  log(lines: Buffer): void {
    if (this.#out.isTTY) this.answer(lines.toString());
    else this.#out.write(lines);
  }

  /** Prints a line of the log on stdout, for people; dim up to `INFO`, and warnings and errors in colour. */
  logLine(text: string): void {
    const style = /^\S+ (WARN|ERROR|FATAL)/.exec(text)?.[1];
    this.print(text, style === undefined ? 'dim' : style === 'WARN' ? 'yellow' : 'red');
  }

  /** Prints lines on stdout, for people. */
  print(text: string, style?: Style): void {
    this.#above(() => this.#out.write(`${styled(sanitize(text), style, this.#out)}\n`));
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
    if (this.shared) this.#err.write(styled(sanitize(text), 'dim', this.#err));
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

  /**
   * Prompts for a message. A line that ends with a backslash goes on in the next one, and pasted lines stay together.
   * Resolves to `closed` at Ctrl-D, and to `interrupted` at Ctrl-C without a text. `history` is newest first.
   */
  readMessage(prompt: string, history: string[], words: readonly string[]): Promise<Typed> {
    const completer = (line: string): [string[], string] => [
      line === '' ? [] : words.filter((word) => word.startsWith(line)),
      line,
    ];
    const { stdin } = process;
    const lines = createInterface({
      input: stdin,
      output: this.#err,
      history,
      historySize: history.length + 1,
      completer,
    });
    let message = '';
    let pasting = false;
    // Terminals mark pasted text between two sequences, for which Node has these names.
    const onKey = (_: string | undefined, { name }: { name?: string }): void => {
      if (name === 'paste-start' || name === 'paste-end') pasting = name === 'paste-start';
    };
    return new Promise<Typed>((resolve) => {
      const ask = (): void => {
        lines.setPrompt(message === '' ? oneLine(prompt) : '… ');
        lines.prompt();
      };
      lines.on('line', (line) => {
        const continues = line.endsWith('\\');
        message += continues ? line.slice(0, -1) : line;
        if (!pasting && !continues) return resolve({ text: message });
        message += '\n';
        ask();
      });
      lines.on('SIGINT', () => {
        if (message === '' && lines.line === '') return resolve('interrupted');
        message = '';
        lines.write(null, { ctrl: true, name: 'e' });
        lines.write(null, { ctrl: true, name: 'u' });
        ask();
      });
      lines.on('close', () => resolve('closed'));
      stdin.on('keypress', onKey);
      this.#err.write(bracketedPaste.on);
      ask();
    }).then((typed) => {
      stdin.off('keypress', onKey);
      lines.close();
      this.#err.write(bracketedPaste.off);
      // After Ctrl-C or Ctrl-D the cursor is behind the prompt.
      this.#lastShared = typeof typed === 'string' ? '' : '\n';
      return typed;
    });
  }

  #printError(text: string, style?: Style): void {
    this.#above(() => {
      if (this.shared && !this.#lastShared.endsWith('\n')) this.#err.write('\n');
      this.#err.write(`${styled(redactCredentials(sanitize(text)), style, this.#err)}\n`);
    });
    this.#lastShared = '\n';
  }

  #above(print: () => void): void {
    if (this.#live === undefined) print();
    else this.#live.above(print);
  }
}

// `hasColors` is false with NO_COLOR, and for a terminal that knows no sequences.
const hasColours = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY && process.env.TERM !== 'dumb' && stream.hasColors?.() === true;

const styled = (text: string, style: Style | undefined, stream: NodeJS.WriteStream): string =>
  style === undefined ? text : styleText(style, text, { stream });

export const terminal = new Terminal();

/** Milliseconds after which a person is told what the program waits for. */
const slowAfter = 5_000;

/** Passes on a promise, and calls back where it takes longer than a person waits without a word. Keeps no process alive. */
export function noteIfSlow<T>(promise: Promise<T>, note: (seconds: number) => void): Promise<T> {
  const timer = setTimeout(note, slowAfter, slowAfter / 1_000).unref();
  return promise.finally(() => clearTimeout(timer));
}

/** Prints rows in columns as wide as their widest cell. On a terminal, a line is cut at its width. */
export function table(head: string[] | undefined, rows: readonly string[][], widths: readonly number[] = []): void {
  const lines = rows.map((row) => row.map((cell) => oneLine(cell)));
  const all = head === undefined ? lines : [head, ...lines];
  const columns = all[0]?.map((_, at) => Math.max(widths[at] ?? 0, ...all.map((cells) => cells[at]?.length ?? 0)));
  for (const [index, cells] of all.entries()) {
    const line = cells
      .map((cell, at) => cell.padEnd(columns?.[at] ?? 0))
      .join('  ')
      .trimEnd();
    terminal.print(fitted(line), index === 0 && head !== undefined ? 'bold' : undefined);
  }
}

/** The line, cut at the width of the terminal. */
export const fitted = (line: string): string =>
  line.length > terminal.width ? `${line.slice(0, terminal.width - 1)}…` : line;
