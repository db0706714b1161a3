import type { AgentLog } from '../core/agent.ts';
import { errorOf, fail } from '../core/errors.ts';
import type { RunRow, Store } from '../core/store.ts';
import type { Limits } from './limits.ts';
import type { LiveRuns } from './live-runs.ts';
import type { SessionTurns } from './session-turns.ts';
import { endStored } from './stored.ts';

const page = 1000;

/** What a start does with the runs that an earlier process left. */
export class Recovery {
  readonly #store: Store;
  readonly #live: LiveRuns;
  readonly #turns: SessionTurns;
  readonly #limits: Limits;
  readonly #logFor: (run_id: string) => AgentLog;
  readonly #now: () => string;

  constructor(
    store: Store,
    live: LiveRuns,
    turns: SessionTurns,
    { limits, logFor, now }: { limits: Limits; logFor: (run_id: string) => AgentLog; now: () => string },
  ) {
    this.#store = store;
    this.#live = live;
    this.#turns = turns;
    this.#limits = limits;
    this.#logFor = logFor;
    this.#now = now;
  }

  /** Looks after all of them, oldest first, so that queues form again in the order that they had. */
  async recover(): Promise<void> {
    for (let after = ''; ; ) {
      const rows = await this.#store.unfinished(undefined, after, page);
      for (const row of rows) await this.#look(row);
      after = rows.at(-1)?.run_id ?? after;
      if (rows.length < page) return;
    }
  }

  async #look(row: RunRow): Promise<void> {
    try {
      // Awaiting durable runs stay on disk until somebody answers, so that they cost nothing.
      if (row.status === 'awaiting' && row.tier === 'durable') return;
      // First: whoever cancelled a queued run was told so.
      if (row.status === 'cancelling') await endStored(this.#store, row, this.#now());
      else if (row.queued_at !== null) await this.#queueAgain(row);
      else if (row.tier === 'pinned') await endStored(this.#store, row, this.#now(), fail('run_interrupted').toJSON());
      else if (row.attempts >= this.#limits.attempts && this.#limits.attempts > 0) {
        await endStored(this.#store, row, this.#now(), fail('recovery_exhausted', row.attempts).toJSON());
      } else {
        const { begin } = await this.#live.revive(row, { attempts: row.attempts + 1 });
        await begin();
      }
    } catch (error) {
      // One run that cannot be read or whose agent is gone must not keep the server from starting.
      this.#logFor(row.run_id).error(`could not be re-entered: ${String(error)}`);
      await endStored(this.#store, row, this.#now(), errorOf(error));
    }
  }

  async #queueAgain(row: RunRow): Promise<void> {
    const others = await this.#store.unfinished(row.session_id, '', page);
    const before = others.map(({ run_id }) => run_id).filter((run_id) => run_id < row.run_id);
    const { wait } = await this.#live.revive(row);
    this.#turns.wait(await wait(), new Set(before));
  }
}
