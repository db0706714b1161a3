import { once } from 'node:events';
import { RivuletProcess } from '../../support/process.ts';
import { Durations, type Faults, sleep } from './measurements.ts';

/** Milliseconds until a start or a stop fails. */
const startTimeout = 120_000;
const stopTimeout = 60_000;
/** Distinct log lines that are kept. */
const maxLines = 40;

export interface NodeOptions {
  readonly port: number;
  /** Arguments of `rivulet serve`, without the port. */
  readonly args: readonly string[];
  readonly folder: string;
  readonly faults: Faults;
}

/** A server process on one port that the test kills, pauses, stops and restarts. */
export class Node {
  readonly name: string;
  readonly port: number;
  readonly #options: NodeOptions;
  #process: RivuletProcess | undefined;
  #starts = 0;
  #exitExpected = false;
  /** When the last act on it ended; undefined during an act. */
  #calmSince: number | undefined;
  /** Log lines and their counts. */
  readonly logged = new Map<string, number>();
  /** Milliseconds from each start of the process until it listens. */
  readonly startTimes = new Durations();

  constructor(name: string, options: NodeOptions) {
    this.name = name;
    this.port = options.port;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The mark in the tokens of its agents. */
  get mark(): string {
    return `${this.name}.${this.#starts}`;
  }

  get up(): boolean {
    return this.#calmSince !== undefined;
  }

  /** Whether it is up, and nothing was done to it since a time. */
  calm(since: number): boolean {
    return this.#calmSince !== undefined && this.#calmSince < since;
  }

  /** Starts it; with `killAfter`, kills it after so many milliseconds. @throws Error if it does not start */
  async start(killAfter?: number): Promise<void> {
    const { args, folder, port, faults } = this.#options;
    this.#starts += 1;
    const { mark } = this;
    const startedAt = performance.now();
    const started = new RivuletProcess(['serve', '--port', String(port), ...args], { NODE_MARK: mark }, folder);
    this.#process = started;
    this.#exitExpected = false;
    started.child.once('exit', (code, signal) => {
      if (this.#exitExpected || this.#process !== started) return;
      this.#calmSince = undefined;
      faults.add('a node exited by itself', `${mark} with ${code ?? signal}: ${started.err.slice(-1_000)}`);
    });
    if (killAfter !== undefined) {
      await sleep(killAfter);
      return this.kill();
    }
    const timer = setTimeout(() => started.child.kill('SIGKILL'), startTimeout);
    await started.url().finally(() => clearTimeout(timer));
    this.startTimes.add(performance.now() - startedAt);
    this.#calmSince = performance.now();
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Stops it with SIGTERM: its runs end or are handed over. */
  async stop(): Promise<void> {
    const { mark } = this;
    const timer = setTimeout(() => this.#process?.child.kill('SIGKILL'), stopTimeout);
    const code = await this.#end('SIGTERM').finally(() => clearTimeout(timer));
    if (code !== 0) this.#options.faults.add('a node did not exit with 0 after SIGTERM', `${mark}: ${code}`);
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
    this.#exitExpected = true;
    const ending = this.#process;
    if (ending === undefined || ending.child.exitCode !== null || ending.child.signalCode !== null) return undefined;
    const closed = once(ending.child, 'close');
    ending.child.kill(signal);
    await closed;
    this.#collectLogs(ending);
    return ending.child.exitCode ?? ending.child.signalCode;
  }

  /** Counts log lines, without ids and other values that differ. */
  #collectLogs({ out, err }: RivuletProcess): void {
    for (const line of `${out}\n${err}`.split('\n')) {
      const summary = line.startsWith('{') ? summaryOf(line) : /error/i.exec(line)?.input;
      if (summary === undefined || (!this.logged.has(summary) && this.logged.size >= maxLines)) continue;
      this.logged.set(summary, (this.logged.get(summary) ?? 0) + 1);
    }
  }
}

function summaryOf(line: string): string | undefined {
  try {
    const { level, msg, err } = JSON.parse(line);
    if (msg === undefined || level < 40) return undefined;
    const cause = err === undefined ? '' : `: ${err.type} ${err.message}`;
    return `${level >= 50 ? 'error' : 'warn'} ${msg}${cause}`
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}|req-\w+/g, '…')
      .slice(0, 300);
  } catch {
    return undefined;
  }
}
