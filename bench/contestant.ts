/** A contestant: a server process on a core of its own, which reports its CPU time and memory. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { killAtExit } from './cleanup.ts';
import type { Wire } from './wires.ts';

export interface Entry {
  /** For the command line. */
  readonly id: string;
  /** For the tables. */
  readonly name: string;
  /** File in `contestants/`, without its extension, and its arguments. */
  readonly file: string;
  readonly args?: readonly string[];
  /** The binary that runs it. Default: the Node that runs the bench. */
  readonly node?: string;
  readonly wire: Wire;
  /** The folder of another checkout, which is built. Default: this one. */
  readonly checkout?: string;
  /** The largest number of streams that it can serve at their pace. Default: no limit. */
  readonly most?: number;
}

export interface Usage {
  /** Microseconds of CPU time since it began to listen. */
  readonly cpu: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
  /** Objects on the heap, in bytes. */
  readonly heap: number;
  /** Number of commits; only nodes report it. */
  readonly commits?: number;
}

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Compiles the contestants of a checkout, so that no loader is measured. Without type checks, because peers may not be
 * installed.
 */
export function build(checkout = root): void {
  execFileSync('node_modules/.bin/tsc', ['-p', 'bench/contestants'], { cwd: checkout, stdio: 'inherit' });
}

export class Contestant {
  readonly entry: Entry;
  readonly port: number;
  /** When its process was spawned, by the clock of `performance.now()`. */
  readonly spawned: number;
  readonly #child: ChildProcess;

  private constructor(entry: Entry, child: ChildProcess, port: number, spawned: number) {
    this.entry = entry;
    this.#child = child;
    this.port = port;
    this.spawned = spawned;
  }

  /**
   * Starts the server; with `pinned` on core 0, while the load has core 1. `flags` are Node's.
   * @throws Error with its last error output, where it does not start
   */
  static async start(entry: Entry, { pinned = true, flags = ['--expose-gc'] } = {}): Promise<Contestant> {
    const file = resolve(entry.checkout ?? root, `bench/built/${entry.file}.js`);
    const command = [entry.node ?? process.execPath, ...flags, file, ...(entry.args ?? [])];
    const [first = '', ...rest] = pinned ? ['taskset', '-c', '0', ...command] : command;
    const spawned = performance.now();
    const child = spawn(first, rest, {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    killAtExit(child);
    let output = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-4_000);
    });
    const failed = once(child, 'exit').then(() => {
      throw new Error(reason(output));
    });
    return Promise.race([listening(child, (port) => new Contestant(entry, child, port, spawned)), failed]);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** CPU time and memory so far. */
  usage(): Promise<Usage> {
    return this.#ask('usage');
  }

  /** The same after a garbage collection. */
  usageAfterGc(): Promise<Usage> {
    return this.#ask('memory');
  }

  /** Continues all held streams. */
  release(): void {
    this.#child.send('release');
  }

  async stop(): Promise<void> {
    await this.#end(() => this.#child.kill('SIGKILL'));
  }

  /** Lets the process exit by itself, so that Node writes a profile. */
  async exit(): Promise<void> {
    await this.#end(() => this.#child.disconnect());
  }

  async #end(stop: () => void): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    stop();
    await exited;
  }

  async #ask(what: 'usage' | 'memory'): Promise<Usage> {
    if (!this.#child.connected) throw new Error(`${this.entry.name} has ended`);
    const answer = once(this.#child, 'message');
    this.#child.send(what);
    const [message] = await answer;
    return message;
  }
}

function listening<T>(child: ChildProcess, made: (port: number) => T): Promise<T> {
  return new Promise((resolve) => {
    let out = '';
    // Keeps reading afterwards: a server that prints would block at a full pipe.
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      out = (out + chunk).slice(-4_000);
      const port = /listening (\d+)/.exec(out)?.[1];
      if (port !== undefined) resolve(made(Number(port)));
    });
  });
}

/** The message of an error, without its stack. */
const reason = (output: string): string =>
  /^\w*Error\b.*$/m.exec(output)?.[0] ?? (output.trim().split('\n').at(-1) || 'it ended without output');
