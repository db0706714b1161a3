import type { Lease } from '../../core/dispatcher.ts';
import { errorOf, fail, RivuletError } from '../../core/errors.ts';
import { isFinal } from '../../core/status.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Services } from '../execution/services.ts';
import { endStored } from '../log/stored-run.ts';
import type { LiveRuns } from './active-runs.ts';
import type { Revival } from './recover.ts';
import type { SessionTurns } from './session-queue.ts';

const page = 1000;

/** Takes runs in hand that this process is to execute: new ones, and those that another process had. */
export class Executor {
  readonly #store: Store;
  readonly #live: LiveRuns;
  readonly #turns: SessionTurns;
  readonly #revival: Revival;
  readonly #services: Services;

  constructor(store: Store, live: LiveRuns, turns: SessionTurns, revival: Revival, services: Services) {
    this.#store = store;
    this.#live = live;
    this.#turns = turns;
    this.#revival = revival;
    this.#services = services;
  }

  /** Executes a run that was offered, whatever state it is in; resolves when it is out of this process's hands. */
  readonly execute = async (run_id: string, lease: Lease): Promise<void> => {
    const here = this.#live.here(run_id);
    // Made by this process: it is in memory still.
    if (here !== undefined && !here.log.detached) here.start();
    else await this.#take(run_id);
    if (this.#services.dispatcher.shared) await this.#live.hold(run_id, lease);
  };

  /** A run is out of a process's hands: where there is still something to do, somebody has to take it again. */
  readonly settled = async (run_id: string): Promise<void> => {
    const row = await this.#store.run(run_id);
    if (row !== undefined && isLoose(row) && this.#live.here(run_id) === undefined) {
      await this.#services.dispatcher.offer([run_id]);
    }
  };

  /** Looks after all runs that an earlier process left, oldest first, so that queues form again in their order. */
  async recover(): Promise<void> {
    for (let after = ''; ; ) {
      const rows = await this.#store.unfinished(undefined, after, page);
      for (const row of rows) await this.#enter(row);
      after = rows.at(-1)?.run_id ?? after;
      if (rows.length < page) return;
    }
  }

  /** Asks for somebody to execute a run, here or elsewhere; where that fails, it is offered again later. */
  offer(run_id: string): void {
    this.#services.dispatcher.offer([run_id]).catch((error: unknown) => {
      this.#services.logFor(run_id).warn(`could not be offered: ${String(error)}`);
    });
  }

  /** Offers runs that may be offered already. */
  async offerAll(rows: readonly RunRow[]): Promise<void> {
    if (rows.length > 0) await this.#services.dispatcher.offer(rows.map(({ run_id }) => run_id));
  }

  /** Lets a run that was queued by a process that is gone wait for the earlier ones of its session. */
  async queueAgain(row: RunRow): Promise<void> {
    if (this.#turns.awaits(row)) return;
    const others = await this.#store.unfinished(row.session_id, '', page);
    const earlier = others.filter(({ run_id, queued_at }) => queued_at === null || run_id < row.run_id);
    const before = earlier.map(({ run_id }) => run_id);
    this.queue(row, new Set(before));
  }

  /** Lets a run wait until those before it are over; then it is offered. */
  queue(row: RunRow, before: ReadonlySet<string>): void {
    this.#turns.wait(row, before, () => void this.#begin(row).catch(() => undefined)); // it is looked at again later
  }

  /** Its turn has come; that it has is durable before its agent does anything. */
  async #begin(row: RunRow): Promise<void> {
    const begun = { ...row, queued_at: null };
    const [kept] = await this.#store.commit([{ row: begun, expect: row.last, lines: [], when: 'alone' }]);
    if (kept === 'taken') return this.offer(row.run_id);
    // It is cancelled, or another process has begun it, or another run of the session.
    const now = await this.#store.run(row.run_id);
    if (now?.status === 'created' && now.queued_at !== null) await this.queueAgain(now);
  }

  async #take(run_id: string): Promise<void> {
    try {
      const row = await this.#store.run(run_id);
      if (row !== undefined && !isFinal(row.status)) await this.#enter(row);
    } catch (error) {
      // It is offered again when the store is back.
      this.#services.logFor(run_id).warn(`could not be taken in hand: ${String(error)}`);
    }
  }

  async #enter(row: RunRow): Promise<void> {
    try {
      await this.#goOn(row);
    } catch (error) {
      const kind = error instanceof RivuletError ? error.kind : undefined;
      // Somebody else has it, or nobody can have it just now.
      if (kind === 'lost_race') return;
      if (kind === 'store_away') throw error;
      // One run that cannot be read or whose agent is gone must not keep the server from starting.
      this.#services.logFor(row.run_id).error(`could not be re-entered: ${String(error)}`);
      await this.#end(row, errorOf(error));
    }
  }

  async #goOn(row: RunRow): Promise<void> {
    const { attempts } = this.#services.limits;
    // Awaiting durable runs stay on disk until somebody answers, so that they cost nothing.
    if (row.status === 'awaiting' && row.tier === 'durable') return;
    // First: whoever cancelled a queued run was told so.
    if (row.status === 'cancelling') return this.#end(row);
    if (row.queued_at !== null) return this.queueAgain(row);
    // One that has not begun has lost nothing.
    if (row.tier === 'pinned' && row.status !== 'created') return this.#end(row, fail('run_interrupted').toJSON());
    if (row.attempts >= attempts && attempts > 0)
      return this.#end(row, fail('recovery_exhausted', row.attempts).toJSON());
    const execution = await this.#revival.revive(row, { attempts: row.attempts + 1 });
    execution.start();
  }

  async #end(row: RunRow, error?: ErrorBody): Promise<void> {
    if (!(await endStored(this.#store, row, this.#services.now(), error))) return;
    this.#live.touched(row.run_id);
    this.#turns.over(row);
  }
}

/** Whether a run wants to be executed, so that where nobody has it, somebody has to. */
export const isLoose = ({ status, queued_at }: RunRow): boolean =>
  queued_at === null && (status === 'created' || status === 'in-progress' || status === 'cancelling');
