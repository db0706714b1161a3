import { fail } from '../../core/errors.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { Execution } from '../execution/execution.ts';
import type { Limits } from '../limits.ts';
import { endStored } from '../log/stored-run.ts';
import type { LiveRuns } from './active-runs.ts';

const page = 100;
/** Bits of clearing up for each look; each takes the store a few milliseconds at most. */
const bits = 200;

/** Looks every second at what is over its time: runs that work, wait or are silent too long, and what is kept too long. */
export class Sweeper {
  readonly #store: Store;
  readonly #live: LiveRuns;
  readonly #limits: Limits;
  readonly #over: (row: RunRow) => void;
  readonly #failed: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;

  /** `over` is told of runs that were ended while no process had them; `failed`, of a store that does not answer. */
  constructor(
    store: Store,
    live: LiveRuns,
    limits: Limits,
    over: (row: RunRow) => void,
    failed: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#live = live;
    this.#limits = limits;
    this.#over = over;
    this.#failed = failed;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#sweeping ??= this.#sweep()
        .catch(this.#failed)
        .finally(() => {
          this.#sweeping = undefined;
        });
    }, this.#limits.sweepEvery);
    this.#timer.unref();
  }

  /** Resolves when no sweep is under way any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const now = new Date().toISOString();
    for (const execution of this.#live.all()) this.#look(execution, now);
    for (const row of await this.#store.due(now, page)) {
      if (this.#live.here(row.run_id) !== undefined) continue;
      if (await endStored(this.#store, row, now, fail('await_timeout').toJSON())) this.#over(row);
    }
    const { keepRuns, keepKeys } = this.#limits;
    const before = { keys: ago(keepKeys), ...(keepRuns > 0 && { runs: ago(keepRuns) }) };
    for (let bit = 0; bit < bits && this.#timer !== undefined && (await this.#store.sweep(before)); bit += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #look(execution: Execution, now: string): void {
    const { runTime, silence, passivateAfter } = this.#limits;
    const { status, await_request } = execution.run;
    if (execution.replaying) return;
    if (status === 'in-progress') {
      if (runTime > 0 && execution.worked > runTime) execution.failWith(fail('run_timeout', runTime / 1000).toJSON());
      else if (silence > 0 && execution.silentFor() > silence)
        execution.failWith(fail('silence_timeout', silence / 1000).toJSON());
    } else if (status === 'awaiting') {
      const expires = await_request?.expires_at;
      if (expires !== undefined && expires <= now) execution.failWith(fail('await_timeout').toJSON());
      else if (execution.durable && execution.silentFor() > passivateAfter) void this.#live.leave(execution);
    }
  }
}

const ago = (milliseconds: number): string => new Date(Date.now() - milliseconds).toISOString();
