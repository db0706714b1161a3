import { once } from 'node:events';
import { RivuletProcess } from '../../support/process.ts';
import type { Faults } from './faults.ts';

/** Milliseconds that a process may take to come up, and to end when it is asked to. */
const mostStart = 60_000;
const mostStop = 30_000;
/** Distinct lines of a node's log that are told. */
const mostLines = 40;

export interface NodeOptions {
  readonly port: number;
  /** Arguments of `rivulet serve`, the port left out. */
  readonly args: readonly string[];
  readonly folder: string;
  readonly faults: Faults;
}

/** A server process on one port, which is killed, paused, stopped and started again. */
export class Node {
  readonly name: string;
  readonly port: number;
  readonly #options: NodeOptions;
  #process: RivuletProcess | undefined;
  #life = 0;
  #expected = false;
  /** Since when nothing is done to it; undefined while something is. */
  #calmSince: number | undefined;
  /** What it logged, and how often. */
  readonly logged = new Map<string, number>();

  constructor(name: string, options: NodeOptions) {
    this.name = name;
    this.port = options.port;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What its agents put into what they say. */
  get mark(): string {
    return `${this.name}.${this.#life}`;
  }

  get up(): boolean {
    return this.#calmSince !== undefined;
  }

  /** Whether it is up, and nothing was done to it since then. */
  calm(since: number): boolean {
    return this.#calmSince !== undefined && this.#calmSince < since;
  }

  /** @throws Error where it does not come up */
  async start(): Promise<void> {
    const { args, folder, port, faults } = this.#options;
    this.#life += 1;
    const { mark } = this;
    const started = new RivuletProcess(['serve', '--port', String(port), ...args], { NODE_MARK: mark }, folder);
    this.#process = started;
    this.#expected = false;
    started.child.once('exit', (code, signal) => {
      if (this.#expected || this.#process !== started) return;
      this.#calmSince = undefined;
      faults.add('a node ended by itself', `${mark} with ${code ?? signal}: ${started.err.slice(-1_000)}`);
    });
    const late = setTimeout(() => started.child.kill('SIGKILL'), mostStart);
    await started.url().finally(() => clearTimeout(late));
    this.#calmSince = performance.now();
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** In good order: what is under way ends cleanly, or is handed over. */
  async stop(): Promise<void> {
    const { mark } = this;
    const late = setTimeout(() => this.#process?.child.kill('SIGKILL'), mostStop);
    const code = await this.#end('SIGTERM').finally(() => clearTimeout(late));
    if (code !== 0) this.#options.faults.add('a node that was asked to stop did not end with 0', `${mark}: ${code}`);
  }

  pause(): void {
    this.#calmSince = undefined;
    this.#process?.child.kill('SIGSTOP');
  }

  wake(): void {
    this.#process?.child.kill('SIGCONT');
    this.#calmSince = performance.now();
  }

  async #end(signal: NodeJS.Signals): Promise<number | string | null | undefined> {
    this.#calmSince = undefined;
    this.#expected = true;
    const ending = this.#process;
    if (ending === undefined || ending.child.exitCode !== null) return undefined;
    const closed = once(ending.child, 'close');
    ending.child.kill(signal);
    await closed;
    this.#read(ending);
    return ending.child.exitCode ?? ending.child.signalCode;
  }

  /** Keeps what it logged, without what differs from time to time. */
  #read({ out, err }: RivuletProcess): void {
    for (const line of `${out}\n${err}`.split('\n')) {
      const said = line.startsWith('{') ? summaryOf(line) : undefined;
      if (said === undefined || (!this.logged.has(said) && this.logged.size >= mostLines)) continue;
      this.logged.set(said, (this.logged.get(said) ?? 0) + 1);
    }
  }
}

function summaryOf(line: string): string | undefined {
  try {
    const { level, msg, err } = JSON.parse(line);
    if (msg === undefined || level < 40) return undefined;
    const why = err === undefined ? '' : `: ${err.type} ${err.message}`;
    return `${level >= 50 ? 'error' : 'warn'} ${msg}${why}`
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}|req-\w+/g, '…')
      .slice(0, 300);
  } catch {
    return undefined;
  }
}
