/** A contestant: a server process on a core of its own, which tells what CPU time and memory it has used. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { owned } from './owned.ts';
import type { Wire } from './wires.ts';

export interface Entry {
  /** Short, for the command line. */
  readonly id: string;
  /** As in the tables. */
  readonly name: string;
  /** File in `contestants/`, without its ending, and its arguments. */
  readonly file: string;
  readonly args?: readonly string[];
  /** The binary that runs it. Default: the Node that runs the bench. */
  readonly node?: string;
  readonly wire: Wire;
  /** Streams that it has a chance to serve at their pace. Default any number. */
  readonly most?: number;
}

export interface Usage {
  /** CPU time since it began to listen, in microseconds. */
  readonly cpu: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
  /** How often it has committed; only a node tells that. */
  readonly commits?: number;
}

const root = fileURLToPath(new URL('..', import.meta.url));

/** Compiles the contestants, so that no loader is measured with them. Unchecked, because peers may not be installed. */
export function build(): void {
  execFileSync('node_modules/.bin/tsc', ['-p', 'bench/contestants'], { cwd: root, stdio: 'inherit' });
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
   * Starts it; on core 0 if it is to be pinned, while the load has core 1. `flags` are Node's.
   * @throws Error with the last that it said, where it does not come up
   */
  static async start(entry: Entry, { pinned = true, flags = ['--expose-gc'] } = {}): Promise<Contestant> {
    const file = fileURLToPath(new URL(`built/${entry.file}.js`, import.meta.url));
    const command = [entry.node ?? process.execPath, ...flags, file, ...(entry.args ?? [])];
    const [first = '', ...rest] = pinned ? ['taskset', '-c', '0', ...command] : command;
    const spawned = performance.now();
    const child = spawn(first, rest, {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    owned(child);
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-4_000);
    });
    const failed = once(child, 'exit').then(() => {
      throw new Error(reason(said));
    });
    return Promise.race([listening(child, (port) => new Contestant(entry, child, port, spawned)), failed]);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it has used so far. */
  usage(): Promise<Usage> {
    return this.#ask('usage');
  }

  /** The same after it has thrown its garbage away. */
  settled(): Promise<Usage> {
    return this.#ask('memory');
  }

  /** Lets all held streams go on. */
  release(): void {
    this.#child.send('release');
  }

  async stop(): Promise<void> {
    await this.#end(() => this.#child.kill('SIGKILL'));
  }

  /** Lets it exit by itself, which is when Node writes a profile. */
  async leave(): Promise<void> {
    await this.#end(() => this.#child.disconnect());
  }

  async #end(how: () => void): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    how();
    await gone;
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
    // Read on afterwards too: a server that prints would stop at a full pipe.
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      out = (out + chunk).slice(-4_000);
      const port = /listening (\d+)/.exec(out)?.[1];
      if (port !== undefined) resolve(made(Number(port)));
    });
  });
}

/** The line of an error that says what is wrong, not its stack. */
const reason = (said: string): string =>
  /^\w*Error\b.*$/m.exec(said)?.[0] ?? (said.trim().split('\n').at(-1) || 'it ended without a word');
