import { EventEmitter } from 'eventemitter3';
import type { Lease } from '../../core/dispatcher.ts';
import { fail } from '../../core/errors.ts';
import { Roster } from '../../core/roster.ts';
import type { Moved, RunRow, Store } from '../../core/store.ts';
import type { Execution } from '../execution/execution.ts';
import type { Services } from '../execution/services.ts';
import { madeAt } from '../ids.ts';
import type { Runs } from '../log/cursor.ts';
import type { Commits } from '../log/group-commit.ts';
import type { RunLog } from '../log/run-log.ts';
import { foldRow } from '../log/stored-run.ts';
import type { SessionTurns } from './session-queue.ts';

/** A lease of a run, and whom it is given back to. */
interface Held {
  readonly lease: Lease;
  readonly release: () => void;
}

/** The runs that this process has in hand. */
export class LiveRuns implements Runs {
  readonly #store: Store;
  readonly #commits: Commits;
  readonly #services: Services;
  readonly #executions = new Roster<Execution>();
  /** Those of them that are at work, and do not await. */
  readonly #working = new Set<string>();
  readonly #changed = new EventEmitter<Record<string, []>>();
  #listening = 0;
  readonly #turns: SessionTurns;
  readonly #held = new Map<string, Held[]>();
  #stopping = false;

  constructor(store: Store, commits: Commits, services: Services, turns: SessionTurns) {
    this.#store = store;
    this.#commits = commits;
    this.#services = services;
    this.#turns = turns;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** How many runs are at work. */
  get working(): number {
    return this.#working.size;
  }

  /**
   * The run's execution; waits for one that is just leaving, so that the store has all of it. Of many processes, asks
   * the store whether the run is still this one's: a hint that it is not may be on its way.
   */
  async get(run_id: string): Promise<Execution | undefined> {
    const execution = this.#executions.get(run_id);
    if (execution === undefined) return undefined;
    if (execution.log.detached)
      await execution.log.flushed().catch(() => undefined); // whoever needs the store will hear of it there
    else if (this.#services.dispatcher.shared) this.moved({ ...(await this.row(run_id)), final: false });
    return execution.log.detached ? undefined : execution;
  }

  /** The run's execution, as far as this process knows. */
  here(run_id: string): Execution | undefined {
    return this.#executions.get(run_id);
  }

  all(): Execution[] {
    return [...this.#executions.values()];
  }

  /** @throws RivuletError `run_unknown`, `log_removed` */
  async find(run_id: string, seen = 0): Promise<RunLog | RunRow> {
    const log = this.#executions.get(run_id)?.log;
    if (log !== undefined && seen <= log.durable) return log;
    // Whoever has seen more than is here has seen it in another process.
    return (await this.get(run_id))?.log ?? this.row(run_id);
  }

  /** @throws RivuletError `run_unknown`, `log_removed` */
  async row(run_id: string): Promise<RunRow> {
    const row = await this.#store.run(run_id);
    if (row !== undefined) return row;
    const { keepRuns } = this.#services.limits;
    // Ids carry the time of their making, so no list of what is gone has to be kept.
    throw keepRuns > 0 && madeAt(run_id) < Date.now() - keepRuns
      ? fail('log_removed', run_id)
      : fail('run_unknown', run_id);
  }

  /** The Run as JSON; durable. @throws RivuletError `run_unknown`, `log_removed`, `store_away` */
  async json(run_id: string): Promise<string> {
    const execution = await this.get(run_id);
    if (execution === undefined || execution.replaying)
      return JSON.stringify(await foldRow(this.#store, await this.row(run_id)));
    const run = JSON.stringify(execution.run);
    await this.#commits.kept(execution.log);
    return run;
  }

  on(run_id: string, callback: () => void): () => void {
    this.#changed.on(run_id, callback);
    this.#listening += 1;
    let listens = true;
    return () => {
      if (!listens) return;
      listens = false;
      this.#changed.off(run_id, callback);
      this.#listening -= 1;
    };
  }

  /** Some process has written to a run. Where that was not this one, the run is no longer in its hands. */
  moved({ run_id, epoch, last }: Moved): void {
    const log = this.#executions.get(run_id)?.log;
    if (log === undefined) this.touched(run_id);
    else if (epoch > log.row.epoch || last > log.row.last) log.refused();
  }

  /** Anything may have moved: everybody who waits for another process looks again. */
  missed(): void {
    for (const run_id of this.#changed.eventNames()) this.#changed.emit(String(run_id));
  }

  /** The lease of a run that is here; resolves when the run is not here any more. */
  hold(run_id: string, lease: Lease): Promise<void> {
    return new Promise((release) => {
      this.#held.set(run_id, [...(this.#held.get(run_id) ?? []), { lease, release }]);
      const execution = this.#executions.get(run_id);
      if (execution === undefined) this.#release(run_id);
      else this.#count(execution);
    });
  }

  /** Takes a run in hand; resolves when what it has written is durable. Rejects `store_failed`, `lost_race`. */
  async enter(execution: Execution): Promise<void> {
    const { run_id } = execution.log.row;
    this.#executions.set(run_id, execution);
    this.#count(execution);
    execution.log.whenTurned(() => this.#count(execution));
    this.touched(run_id);
    try {
      await execution.log.flushed();
    } catch (error) {
      this.#drop(execution);
      throw error;
    }
    execution.log.whenOver(() => {
      const { row, failure, detached } = execution.log;
      this.#drop(execution);
      if (failure !== undefined) execution.lost(failure);
      // In another process it goes on.
      if (detached) this.#turns.left(row);
      else this.#turns.over(row);
    });
  }

  /** Lets a durable run out of memory; whoever reads it goes on reading when it is back. */
  async leave(execution: Execution): Promise<void> {
    execution.detach();
    await execution.log.flushed().catch(() => undefined); // the log has told whoever has to know
    this.#drop(execution);
    this.#turns.left(execution.log.row);
    // What was flushed only now is news to readers who have looked already.
    this.touched(execution.log.row.run_id);
  }

  #count(execution: Execution): void {
    const { run_id, status } = execution.log.row;
    if (this.#executions.get(run_id) !== execution) return;
    const rests = status === 'awaiting';
    if (rests) this.#working.delete(run_id);
    else this.#working.add(run_id);
    for (const { lease } of this.#held.get(run_id) ?? [])
      if (rests) lease.rest();
      else lease.wake();
  }

  #drop(execution: Execution): void {
    const { run_id } = execution.log.row;
    if (this.#executions.get(run_id) !== execution) return;
    this.#executions.delete(run_id);
    this.#working.delete(run_id);
    this.#release(run_id);
  }

  #release(run_id: string): void {
    const held = this.#held.get(run_id);
    this.#held.delete(run_id);
    for (const { release } of held ?? []) release();
  }

  /** Tells readers that a run which is in no process has changed. */
  touched(run_id: string): void {
    // V8 keeps a list of all names that were ever looked up: 1.5 µs for one that nobody listens to.
    if (this.#listening > 0) this.#changed.emit(run_id);
  }

  /** Ends what is going on: durable runs stay for the next process, pinned ones get their time and then fail. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const one of this.all())
      if (one.run.status === 'awaiting' && !one.durable) one.failWith(fail('run_interrupted').toJSON());
    const leaving = (): Execution[] => this.all().filter((one) => one.durable);
    // Until there is none: more may come in while the store takes down that these leave.
    for (let some = leaving(); some.length > 0; some = leaving()) {
      await Promise.all(some.map((one) => this.leave(one)));
    }
    this.missed();
    await this.#emptied(this.#services.limits.stopTime);
    for (const one of this.all()) {
      // A durable one that is here now came while the others left.
      if (one.durable) await this.leave(one);
      else one.failWith(fail('run_interrupted').toJSON());
    }
    await this.#commits.drained();
  }

  /** Resolves when no run is left, or the time is over, in milliseconds. */
  async #emptied(deadline: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline);
    });
    const ended = this.all().map(({ log }) => new Promise<void>((resolve) => log.whenOver(resolve)));
    await Promise.race([Promise.all(ended), over]);
    clearTimeout(timer);
  }
}
