import { RivuletError } from '../../src/core/errors.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import type { World } from './world.ts';

export interface ReaderOptions {
  readonly name: string;
  readonly run_id: string;
  readonly after: number;
  readonly until: 'settled' | 'final';
  /** Milliseconds after which it drops its connection, and reconnects to some node; 0 for never. */
  readonly dropsAfter: number;
  /** Whether the run may have been deleted. */
  mayBeGone(): boolean;
  onEvent(id: number, line: string): void;
}

/** Milliseconds without an event after which a stream counts as broken. */
const idleTime = 9_000;
const pause = 300;

/** Reads a run as a client does: after each interruption it continues after the last event that it has, at any node. */
export class Reader {
  readonly #world: World;
  readonly #options: ReaderOptions;
  #seen: number;
  #drop: (() => void) | undefined;
  #connection = 0;
  #calls = 0;
  done = false;

  constructor(world: World, options: ReaderOptions) {
    this.#world = world;
    this.#options = options;
    this.#seen = options.after;
    this.#connect();
  }

  get run_id(): string {
    return this.#options.run_id;
  }

  get name(): string {
    return this.#options.name;
  }

  get seen(): number {
    return this.#seen;
  }

  #connect(): void {
    if (this.done) return;
    const { name, run_id, until, dropsAfter } = this.#options;
    this.#connection += 1;
    const connection = this.#connection;
    const still = (work: () => void) => (): void => {
      if (connection === this.#connection && !this.done) work();
    };
    this.#drop = this.#world.connect(name, run_id, this.#seen, until, {
      line: (id, line) => still(() => this.#onEvent(id, line))(),
      end: (error) => still(() => this.#ended(error))(),
    });
    // Only a few times: a reader that drops each connection at once would never reach the end.
    if (dropsAfter > 0 && connection < 6)
      this.#world.clock.at(
        'world',
        dropsAfter,
        still(() => this.#again()),
      );
    this.#watchIdle(connection);
  }

  #watchIdle(connection: number): void {
    const calls = this.#calls;
    this.#world.clock.at('world', idleTime, () => {
      if (connection !== this.#connection || this.done) return;
      if (calls === this.#calls) this.#again();
      else this.#watchIdle(connection);
    });
  }

  #again(): void {
    this.#connection += 1;
    this.#drop?.();
    if (this.#options.until === 'settled') this.done = true;
    else this.#world.clock.at('world', pause, () => this.#connect());
  }

  #onEvent(id: number, line: string): void {
    this.#calls += 1;
    if (id !== this.#seen + 1)
      this.#world.ledger.violate('readers see the log', `${this.name} gets event ${id} after event ${this.#seen}`);
    this.#seen = id;
    const kind = runEventOf(line);
    if (kind === 'completed' || kind === 'failed' || kind === 'cancelled') this.done = true;
    this.#options.onEvent(id, line);
  }

  #ended(error: unknown): void {
    const { run_id, until, mayBeGone } = this.#options;
    if (error instanceof RivuletError && error.status < 500) {
      if (!mayBeGone())
        this.#world.ledger.violate(
          'a reader can come back',
          `${this.name} of ${run_id} after ${this.#seen}: ${error.message}`,
        );
      this.done = true;
      return;
    }
    if (until === 'settled') this.done = true;
    else this.#again();
  }
}
