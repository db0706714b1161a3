import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { Output } from './output.ts';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');
// Python's standard library can make a terminal for a child process; Node's cannot.
const script = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';

/** A `rivulet` process on a terminal of its own, with keyboard input. */
export class Terminal {
  readonly child: ChildProcess;
  readonly #output: Output;

  constructor(args: string[], env: Record<string, string> = {}) {
    this.child = spawn('python3', ['-c', script, process.execPath, main, ...args], {
      env: { PATH: process.env.PATH ?? '', TERM: 'xterm', ...env },
    });
    this.#output = new Output(this.child);
  }

  /** The output so far; lines end with `\r\n`. */
  get shown(): string {
    return this.#output.text;
  }

  type(keys: string): void {
    this.child.stdin?.write(keys);
  }

  /** Resolves when the text is shown, after the texts of earlier calls. @throws Error if the process ends first */
  shows(text: string): Promise<void> {
    return this.#output.has(text);
  }

  /** Types keys when the text is shown. */
  async at(prompt: string, keys: string): Promise<void> {
    await this.shows(prompt);
    this.type(keys);
  }

  /** Types keys, and resolves when the text is shown. */
  typed(keys: string, text: string): Promise<void> {
    this.type(keys);
    return this.shows(text);
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null) await once(this.child, 'close');
    return this.child.exitCode;
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
