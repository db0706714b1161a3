import { join } from 'node:path';
import { steadyPort } from '../../support/ports.ts';
import { RivuletProcess } from '../../support/process.ts';
import { makeProject } from '../../support/project.ts';
import { agentFiles } from './agents.ts';
import { Violation } from './ledger.ts';

/** The server went down under a request: nothing is known of what came of it. */
export class Cut extends Error {}

/** Throws an error on, unless it is that. */
export function unlessCut(error: unknown): void {
  if (!(error instanceof Cut)) throw error;
}

/** A server process on one file and one port, which is killed and started again and again. */
export class World {
  readonly #project = makeProject(agentFiles);
  readonly #port: number;
  #process: RivuletProcess | undefined;
  #up = false;
  #life = 0;
  #over = false;
  #keep = false;
  #waiting: (() => void)[] = [];
  kills = 0;
  stops = 0;
  /** Milliseconds from each start to being up: mostly Node's, and the recovery of what was there. */
  readonly starts: number[] = [];

  private constructor(port: number) {
    this.#port = port;
  }

  static async make(): Promise<World> {
    return new World(await steadyPort());
  }

  get file(): string {
    return join(this.#project.folder, 'data/rivulet.db');
  }

  /** Which start of the server it is that answers now. */
  get life(): number {
    return this.#life;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts the process; with `killAfter`, it is killed so many milliseconds later, up or not. */
  async start(killAfter?: number): Promise<void> {
    if (this.#over) throw new Error('the world is over');
    const began = performance.now();
    const args = ['serve', '--port', String(this.#port), '--limit', 'attempts=1000000', '--log-level', 'error'];
    const started = new RivuletProcess(args, {}, this.#project.folder);
    this.#process = started;
    this.#life += 1;
    if (killAfter !== undefined) {
      await passed(killAfter);
      return this.kill();
    }
    await started.url();
    this.starts.push(performance.now() - began);
    this.#up = true;
    for (const go of this.#waiting.splice(0)) go();
  }

  async kill(): Promise<void> {
    // First: whatever breaks from now on may.
    this.#up = false;
    this.kills += 1;
    await this.#process?.stop('SIGKILL');
    this.#complain();
  }

  /** Stops it in good order: what is under way ends cleanly, or is refused. */
  async stop(): Promise<void> {
    this.#up = false;
    this.stops += 1;
    const ended = await this.#process?.stop('SIGTERM');
    if (ended !== 0) throw new Violation(`the server ended with ${ended} when it was asked to: ${this.#process?.err}`);
    this.#complain();
  }

  /** Leaves the files for whoever looks for the cause. */
  keep(): void {
    this.#keep = true;
  }

  /** Ends whatever is left. */
  async clear(): Promise<void> {
    this.#up = false;
    this.#over = true;
    await this.#process?.stop('SIGKILL');
    if (!this.#keep) this.#project.remove();
  }

  /** Resolves when there is a server. */
  async ready(): Promise<void> {
    while (!this.#up) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** What it means that something came to no good end: the server went down, or something is wrong. */
  broken(life: number, error: unknown): Cut | Violation {
    if (!this.#up || life !== this.#life) return new Cut();
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return new Violation(`while the server was up: ${cause}`);
  }

  // Nothing in these agents gives the server a reason to log an error; that it stops is one for it.
  #complain(): void {
    const { out = '', err = '' } = this.#process ?? {};
    const line = `${out}\n${err}`
      .split('\n')
      .find((one) => /^\{|error/i.test(one) && !one.includes('The server is stopping'));
    if (line !== undefined) throw new Violation(`the server logged ${line}`);
  }
}

/** Time is what this test is about: when a process dies is its one random event. */
export const passed = (milliseconds: number): Promise<void> => new Promise((go) => setTimeout(go, milliseconds));
