import type { Lease } from '../../core/dispatcher.ts';
import { errorOf, fail, RivuletError } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunRow } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Execution } from '../execution/execution.ts';
import { openSteps } from '../execution/replay.ts';
import { retryUntilAvailable } from '../store-access.ts';
import { endStoredRun } from './end-stored.ts';
import { journalOf, recoverRun } from './recover.ts';
import type { RunServices } from './run-services.ts';

const page = 1000;

/** Takes runs in hand that this process is to execute: new ones, and those that another process had. */
export class Executor {
  readonly #services: RunServices;
  /** Runs that are being looked at: to execute one twice at once would be one execution too many. */
  readonly #entering = new Map<string, Promise<void>>();
  /** Runs that this process has let go of before their end, because the store failed; offered again by `retry`. */
  readonly #toOffer = new Set<string>();

  constructor(services: RunServices) {
    this.#services = services;
  }

  /** Executes a run that was offered, whatever state it is in; resolves when it is out of this process's hands. */
  readonly execute = async (run_id: string, lease: Lease): Promise<void> => {
    const { active, dispatcher } = this.#services;
    const here = active.local(run_id);
    // Made by this process: it is in memory still.
    if (here !== undefined && here.log.outcome === undefined) await this.#start(here);
    else await this.#enterOnce(run_id);
    if (dispatcher.shared) await active.holdLease(run_id, lease);
  };

  /** A run is out of a process's hands: where there is still something to do, it is offered again. */
  readonly onReleased = async (run_id: string): Promise<void> => {
    const { store, active, dispatcher } = this.#services;
    const row = await store.run(run_id);
    if (row !== undefined && needsExecution(row) && active.local(run_id) === undefined)
      await dispatcher.offer([run_id]);
  };

  /** Looks after all runs that an earlier process left, oldest first. */
  async recover(): Promise<void> {
    const { store, executions } = this.#services;
    for (let after = ''; ; ) {
      const rows = await retryUntilAvailable(executions.limits.storeTimeout, () =>
        store.unfinished(undefined, after, page),
      );
      for (const row of rows) await this.#enter(row);
      after = rows.at(-1)?.run_id ?? after;
      if (rows.length < page) return;
    }
  }

  /** Asks for a process to execute a run, this one or another; where that fails, it is offered again by `retry`. */
  offer(run_id: string): void {
    const { dispatcher, executions } = this.#services;
    dispatcher.offer([run_id]).catch((error: unknown) => {
      executions.logFor(run_id).warn(`could not be offered, and will be again: ${String(error)}`);
      this.#toOffer.add(run_id);
    });
  }

  /** Offers runs that may be offered already. */
  async offerAll(rows: readonly RunRow[]): Promise<void> {
    if (rows.length > 0) await this.#services.dispatcher.offer(rows.map(({ run_id }) => run_id));
  }

  /** The store failed while this process had the run: it is offered again when the store is back. */
  offerLater(run_id: string): void {
    this.#toOffer.add(run_id);
  }

  /** Offers the orphans again; called now and then. */
  async offerAgain(): Promise<void> {
    const { active, dispatcher, commits } = this.#services;
    if (this.#toOffer.size === 0 || active.stopping || commits.failing) return;
    const run_ids = [...this.#toOffer];
    // Within this process, a run stops being an orphan when it is taken in hand.
    if (dispatcher.shared) this.#toOffer.clear();
    try {
      await dispatcher.offer(run_ids);
    } catch (error) {
      for (const run_id of run_ids) this.#toOffer.add(run_id);
      throw error;
    }
  }

  #enterOnce(run_id: string): Promise<void> {
    const under = this.#entering.get(run_id);
    if (under !== undefined) return under;
    const taking = this.#load(run_id).finally(() => this.#entering.delete(run_id));
    this.#entering.set(run_id, taking);
    return taking;
  }

  async #load(run_id: string): Promise<void> {
    try {
      const row = await this.#services.store.run(run_id);
      if (row !== undefined && !isFinal(row.status)) await this.#enter(row);
      else this.#toOffer.delete(run_id);
    } catch (error) {
      this.#services.executions.logFor(run_id).warn(`could not be taken in hand, and will be: ${String(error)}`);
      this.#toOffer.add(run_id);
    }
  }

  /** Never rejects: what cannot be done now is done when the store is back. */
  async #enter(row: RunRow): Promise<void> {
    const { executions } = this.#services;
    try {
      const orphan = this.#toOffer.has(row.run_id);
      await this.#reEnter(row, orphan);
      this.#toOffer.delete(row.run_id);
    } catch (error) {
      const kind = error instanceof RivuletError ? error.kind : undefined;
      // Another execution has it.
      if (kind === 'conflict') return void this.#toOffer.delete(row.run_id);
      if (kind === 'store_unavailable' || kind === 'store_failed') {
        executions.logFor(row.run_id).warn(`could not be re-entered, and will be: ${String(error)}`);
        return void this.#toOffer.add(row.run_id);
      }
      // One run that cannot be read or whose agent is gone must not keep the others from going on.
      executions.logFor(row.run_id).error(`could not be re-entered: ${String(error)}`);
      await this.#end(row, errorOf(error)).catch(() => void this.#toOffer.add(row.run_id));
    }
  }

  async #reEnter(row: RunRow, storeFailed: boolean): Promise<void> {
    const { active, executions, queue } = this.#services;
    const { attempts } = executions.limits;
    if (active.stopping || active.local(row.run_id) !== undefined) return;
    if (row.status === 'awaiting' && row.tier === 'durable') {
      // It stays on disk until the reply comes, so that it costs nothing; unless it waits for a step as well.
      const journal = await journalOf(this.#services.store, row.run_id);
      if (openSteps(journal).size > 0) await this.#start(await recoverRun(this.#services, row, {}));
      return;
    }
    // First: the client that cancelled a queued run was told so.
    if (row.status === 'cancelling') return this.#end(row);
    if (row.queued_at !== null) return queue.add(row.session_id);
    // One that has not begun has lost nothing.
    if (row.tier === 'pinned' && row.status !== 'created')
      return this.#end(row, fail(storeFailed ? 'store_failed' : 'run_interrupted').toJSON());
    if (row.attempts >= attempts && attempts > 0)
      return this.#end(row, fail('recovery_exhausted', row.attempts).toJSON());
    await this.#start(await recoverRun(this.#services, row, { attempts: row.attempts + 1 }));
  }

  /** In a process that is stopping, what can go on in the next one is left to it. */
  async #start(execution: Execution): Promise<void> {
    const { active } = this.#services;
    const waits = execution.durable || execution.run.status === 'created';
    if (active.stopping && waits) await active.release(execution);
    else execution.start();
  }

  #end(row: RunRow, error?: ErrorBody): Promise<void> {
    return endStoredRun(this.#services, row, error);
  }
}

/** Whether a run wants to be executed, so that where no process has it, one has to. */
export const needsExecution = ({ status, queued_at }: RunRow): boolean =>
  status === 'cancelling' || (queued_at === null && (status === 'created' || status === 'in-progress'));
