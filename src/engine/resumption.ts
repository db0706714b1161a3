import { encode } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import type { RunRow, Store } from '../core/store.ts';
import type { AwaitResume, AwaitResumeInput, Run } from '../schema/run.ts';
import type { Begun, Wishes } from './begun.ts';
import { type Idempotency, type Once, once } from './idempotency.ts';
import type { LiveRuns } from './live-runs.ts';
import { Replies } from './reply.ts';
import type { Extras } from './run-log.ts';
import { foldRow } from './stored.ts';

/** Lets awaiting runs go on. */
export class Resumption {
  readonly #store: Store;
  readonly #live: LiveRuns;
  readonly #idempotency: Idempotency;
  readonly #now: () => string;
  readonly #replies = new Replies();

  constructor(store: Store, live: LiveRuns, idempotency: Idempotency, now: () => string) {
    this.#store = store;
    this.#live = live;
    this.#idempotency = idempotency;
    this.#now = now;
  }

  /**
   * Answers what an awaiting run asked, whether it is in memory or not.
   * @throws RivuletError `run_unknown`, `not_awaiting`, `other_await`, `misfit`, `key_reused`, `lost_race`
   */
  async resume(run_id: string, input: AwaitResumeInput, { idempotency_key }: Wishes = {}): Promise<Begun> {
    const key = idempotency_key === undefined ? undefined : once(`resume ${run_id}`, idempotency_key, { input });
    return this.#idempotency.once(
      key,
      async ({ after }) => ({ run_id, run: await this.#live.json(run_id), after }),
      () => this.#resume(run_id, input, key),
    );
  }

  async #resume(run_id: string, input: AwaitResumeInput, key: Once | undefined): Promise<Begun> {
    const execution = await this.#live.get(run_id);
    const row = execution?.log.row ?? (await this.#live.row(run_id));
    // While it is led through its past it awaits nothing, whatever it asked then.
    if (execution?.replaying) throw fail('not_awaiting', run_id, row.status);
    const run = execution?.run ?? (await foldRow(this.#store, row));
    if (run.await_request === undefined || (execution === undefined && row.tier === 'pinned')) {
      throw fail('not_awaiting', run_id, run.status);
    }
    const now = this.#now();
    const reply = this.#replies.receive(run.await_request, input, now);
    const extras = this.#idempotency.keep(key, run_id, row.last, now);
    if (execution !== undefined) {
      const after = execution.resume(reply, extras);
      const resumed = JSON.stringify(execution.run);
      await execution.log.flushed();
      return { run_id, run: resumed, after };
    }
    return this.#reviveWith(row, run, reply, extras);
  }

  /** The run is only on disk: its reply and its return are one commit, then it is led up to here again. */
  async #reviveWith(row: RunRow, run: Run, reply: AwaitResume, extras: Extras): Promise<Begun> {
    const { run_id } = row;
    const { await_request: _, ...rest } = run;
    const resumed: Run = { ...rest, status: 'in-progress' };
    const line = encode({ type: 'run.in-progress', run: resumed });
    const entry = { at: row.last, reply };
    const { log, begin } = await this.#live.revive(row);
    log.attach({ ...extras, journal: [JSON.stringify(entry)] });
    log.append(line, { status: 'in-progress', finished_at: null, due: null });
    await begin([line], [entry]);
    return { run_id, run: JSON.stringify(resumed), after: row.last };
  }
}
