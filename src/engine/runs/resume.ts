import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { AwaitResume, AwaitResumeInput, Run } from '../../schema/run.ts';
import type { LeftReplies } from '../cluster/reply-mailbox.ts';
import type { Execution } from '../execution/execution.ts';
import { Replies } from '../execution/reply-schema.ts';
import type { Services } from '../execution/services.ts';
import type { Extras } from '../log/draft.ts';
import type { Commits } from '../log/group-commit.ts';
import { foldRow } from '../log/stored-run.ts';
import type { LiveRuns } from './active-runs.ts';
import type { Begun, Wishes } from './begun.ts';
import type { Executor } from './executor.ts';
import { type Idempotency, type Once, once } from './idempotency.ts';

/** Lets awaiting runs go on. */
export class Resumption {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #live: LiveRuns;
  readonly #executor: Executor;
  readonly #left: LeftReplies;
  readonly #idempotency: Idempotency;
  readonly #replies = new Replies();

  constructor(
    store: Store,
    commits: Commits,
    services: Services,
    live: LiveRuns,
    executor: Executor,
    left: LeftReplies,
    idempotency: Idempotency,
  ) {
    this.#store = store;
    this.#commits = commits;
    this.#services = services;
    this.#live = live;
    this.#executor = executor;
    this.#left = left;
    this.#idempotency = idempotency;
  }

  /**
   * Answers what an awaiting run asked, whether it is in memory or not.
   * @throws RivuletError `run_unknown`, `not_awaiting`, `other_await`, `misfit`, `key_reused`, `lost_race`, `store_away`
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
    this.#commits.check();
    const execution = await this.#live.get(run_id);
    const row = execution?.log.row ?? (await this.#live.row(run_id));
    // While it is led through its past it awaits nothing, whatever it asked then.
    if (execution?.replaying) throw fail('not_awaiting', run_id, row.status);
    const run = execution?.run ?? (await foldRow(this.#store, row));
    // A pinned run that is not here is in another process, where there are several; else it is nowhere.
    const lost = execution === undefined && row.tier === 'pinned' && !this.#services.dispatcher.shared;
    if (run.await_request === undefined || lost) throw fail('not_awaiting', run_id, run.status);
    const now = this.#services.now();
    const reply = this.#replies.receive(run.await_request, input, now);
    const extras = this.#idempotency.keep(key, run_id, row.last, now);
    if (execution !== undefined) return this.#here(execution, reply, extras);
    return row.tier === 'pinned' ? this.#left.leave(row, reply, extras) : this.#goOn(row, run, reply, extras);
  }

  async #here(execution: Execution, reply: AwaitResume, extras: Extras): Promise<Begun> {
    const after = execution.resume(reply, extras);
    const run = JSON.stringify(execution.run);
    await this.#commits.kept(execution.log);
    return { run_id: execution.run.run_id, run, after };
  }

  /** A durable run goes on in the store; whoever takes it leads it up to there again. Who had it can write no more. */
  async #goOn(row: RunRow, run: Run, reply: AwaitResume, extras: Extras): Promise<Begun> {
    // Before anything is written: a run whose agent is gone has to go on waiting.
    this.#services.registry.get(row.agent_name);
    const { run_id, epoch, last } = row;
    const { await_request: _, ...rest } = run;
    const resumed: Run = { ...rest, status: 'in-progress' };
    const place = { status: resumed.status, due: null, last: last + 1, snapshot: last + 1 };
    const [kept] = await this.#store.commit([
      {
        row: { ...row, ...place, epoch: epoch + 1 },
        from: epoch,
        expect: last,
        lines: [encode({ type: 'run.in-progress', run: resumed })],
        journal: [JSON.stringify({ at: last, reply })],
        ...extras,
      },
    ]);
    if (kept !== 'taken') throw fail('lost_race', run_id);
    this.#live.touched(run_id);
    this.#executor.offer(run_id);
    return { run_id, run: JSON.stringify(resumed), after: last };
  }
}
