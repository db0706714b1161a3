import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { Output } from './output.ts';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');
// Python's standard library has what Node's lacks: a terminal for a child.
const script = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';

/** `rivulet` on a terminal of its own, with somebody who types. */
export class Terminal {
  readonly child: ChildProcess;
  readonly #output: Output;

  constructor(args: string[], env: Record<string, string> = {}) {
    this.child = spawn('python3', ['-c', script, process.execPath, main, ...args], {
      env: { PATH: process.env.PATH ?? '', TERM: 'xterm', ...env },
    });
    this.#output = new Output(this.child);
  }

  /** All that the screen has shown; lines end with `\r\n`. */
  get shown(): string {
    return this.#output.text;
  }

  type(keys: string): void {
    this.child.stdin?.write(keys);
  }

  /** Resolves when the screen shows it, after what was waited for before. @throws Error where the process ends instead */
  shows(text: string): Promise<void> {
    return this.#output.has(text);
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null) await once(this.child, 'close');
    return this.child.exitCode;
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
