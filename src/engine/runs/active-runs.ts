import { EventEmitter } from 'eventemitter3';
import { BoxedMap } from '../../core/collections.ts';
import { fail } from '../../core/errors.ts';
import type { RunNotification, RunRow } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { isFinal } from '../../core/run-state.ts';
import { within } from '../../core/timing.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import type { Limits } from '../limits.ts';
import { checkpointOf } from '../log/checkpoint.ts';
import type { GroupCommits } from '../log/group-commits.ts';
import type { RunLog } from '../log/run-log.ts';
import { orUnavailable } from '../store/store-calls.ts';

/** What is known of a write; `changed` only of a notification. */
type Written = Pick<RunNotification, 'run_id' | 'epoch' | 'last'> & Partial<Pick<RunNotification, 'changed'>>;

export interface ActiveRunsOptions {
  readonly limits: Limits;
  /** Whether other processes execute runs of the same store. */
  readonly shared: boolean;
}

export interface ActiveRunsEvents {
  /** An execution begins to await. */
  awaits: [Execution];
  /** A run has ended in this process. */
  final: [Execution];
  /** An execution has left memory, final or not. */
  removed: [Execution];
  /** This process has parked a run. */
  parked: [RunRow];
  /** This process has dropped a run because the store failed, or can never take one of its writes. */
  failed: [RunLog];
  /** Another process has ended a run while it was executed here. */
  endedElsewhere: [Execution];
  /** A run has come to this process or has left it, or another process has written to it: its readers have to find it again. */
  changed: [run_id: string];
  /** The process stops. Readers of runs of other processes wait no longer. */
  stopping: [];
}

/** The earlier one of two times; null stands for none. */
const earliest = (a: string | null, b: string | null): string | null =>
  a !== null && b !== null && b < a ? b : (a ?? b);

/** The runs that this process executes. */
export class ActiveRuns {
  readonly #store: Store;
  readonly #commits: GroupCommits;
  readonly #options: ActiveRunsOptions;
  readonly events = new EventEmitter<ActiveRunsEvents>();
  readonly #executions = new BoxedMap<Execution>();
  #awaiting = 0;
  #state: 'open' | 'stopping' | 'stopped' = 'open';

  constructor(store: Store, commits: GroupCommits, options: ActiveRunsOptions) {
    this.#store = store;
    this.#commits = commits;
    this.#options = options;
  }

  get stopping(): boolean {
    return this.#state !== 'open';
  }

  /** Whether no agent works any more. */
  get stopped(): boolean {
    return this.#state === 'stopped';
  }

  /** The number of runs that work, and do not await. */
  get working(): number {
    return this.#executions.size - this.#awaiting;
  }

  /** The number of runs that await. */
  get awaiting(): number {
    return this.#awaiting;
  }

  /**
   * The run's execution in this process. Waits for one that is being released, so that the store has all of its events.
   * With a shared store, it also checks the row's epoch: a notification of another execution may still be on its way.
   */
  async get(run_id: string): Promise<Execution | undefined> {
    const execution = this.#executions.get(run_id);
    if (execution === undefined) return undefined;
    const { log } = execution;
    if (log.outcome === 'released') {
      // Where the store fails, the next read of it rejects.
      await log.flushed().catch(() => undefined);
    } else if (this.#options.shared) {
      const row = await this.#store.run(run_id);
      if (row !== undefined) this.onWritten(row);
      // Its creation was durable: the store has lost its last writes, and with them the run.
      else if (log.durable > 0) log.fence();
    }
    return log.serves ? execution : undefined;
  }

  /** The run's execution in this process, without a check of the store. */
  local(run_id: string): Execution | undefined {
    return this.#executions.get(run_id);
  }

  all(): Execution[] {
    return this.#executions.all();
  }

  /**
   * Waits until everything that an execution has appended is durable. Returns false where its log was fenced or failed
   * meanwhile, so that the run has to be read from the store.
   * @throws RivuletError `store_unavailable`; what was appended may still become durable later
   */
  async whenDurable({ log }: Execution): Promise<boolean> {
    try {
      await orUnavailable(log.flushed(), this.#options.limits.requestTimeout);
      return true;
    } catch (error) {
      if (log.serves) throw error;
      return false;
    }
  }

  /** A run was written to, in this or another process. Fences the execution here if another one has written. */
  onWritten({ run_id, epoch, last, changed }: Written): void {
    const log = this.#executions.get(run_id)?.log;
    if (log === undefined) this.events.emit('changed', run_id);
    else if (epoch > log.row.epoch || last > log.row.last) log.fence();
    else if (changed === true) this.events.emit('changed', run_id);
  }

  /** Adds an execution; resolves when its first write is durable. Rejects `store_failed`, `conflict`. */
  async add(execution: Execution): Promise<void> {
    const { log } = execution;
    const { run_id } = log;
    this.#executions.set(run_id, execution);
    if (log.row.status === 'awaiting') this.#onAwaits(execution);
    log.onStatusChange((before) => this.#onStatusChange(execution, before));
    this.events.emit('changed', run_id);
    try {
      await log.flushed();
    } catch (error) {
      this.#remove(execution);
      // So that nothing waits for the end of its replay.
      execution.release();
      throw error;
    }
    log.onClosed(() => this.#onLogClosed(execution));
  }

  /**
   * Releases a durable run from memory. Its readers go on when the run is re-entered. With `rests`, the run only awaits or
   * sleeps: no node has to execute it until a reply comes, or until it is due.
   */
  async release(execution: Execution, rests = false): Promise<void> {
    const { log, wakesAt } = execution;
    const now = new Date().toISOString();
    const checkpoint = rests ? checkpointOf(log.row, execution.run) : undefined;
    if (checkpoint !== undefined) log.attach({ resources: [checkpoint] });
    const { due } = log.row;
    if (rests) log.change({ rests_at: now, due: earliest(due, wakesAt ?? null) });
    await this.#leave(execution);
  }

  /** Parks a run of which this process has an execution: it stays in the store as it is, until it is tried again. */
  async park(run_id: string, reason: string): Promise<void> {
    const execution = this.#executions.get(run_id);
    if (execution === undefined) return;
    execution.log.change({ rests_at: new Date().toISOString(), parked: reason });
    await this.#leave(execution);
    if (execution.log.failure === undefined) this.events.emit('parked', execution.log.row);
  }

  async #leave(execution: Execution): Promise<void> {
    const { log } = execution;
    if (this.#options.shared) log.attach({ node: null });
    execution.release();
    // Where it fails, `#onLogClosed` handles it.
    await log.flushed().catch(() => undefined);
    this.#remove(execution);
    // Readers that read the row before the flush have to read it again.
    this.events.emit('changed', log.run_id);
  }

  #onLogClosed(execution: Execution): void {
    const { run_id, failure, outcome } = execution.log;
    this.#remove(execution);
    if (failure !== undefined) {
      execution.abandon(failure, outcome === 'fenced' ? () => this.#isOpen(run_id) : execution.durable);
    }
    if (outcome === 'failed' || outcome === 'rejected') this.events.emit('failed', execution.log);
    if (outcome === 'fenced')
      void this.#isOpen(run_id).then((isOpen) => isOpen || this.events.emit('endedElsewhere', execution));
    if (outcome === 'final') this.events.emit('final', execution);
    else this.events.emit('changed', run_id);
  }

  /** Whether a run goes on in the process that has written to it. Otherwise it has ended, or is cancelled. */
  async #isOpen(run_id: string): Promise<boolean> {
    try {
      const row = await this.#store.run(run_id);
      return row !== undefined && !isFinal(row.status) && row.status !== 'cancelling';
    } catch {
      return true;
    }
  }

  #onStatusChange(execution: Execution, before: RunStatus): void {
    const { run_id, status } = execution.log.row;
    if (status === before || this.#executions.get(run_id) !== execution) return;
    if (before === 'awaiting') this.#awaiting -= 1;
    if (status === 'awaiting') this.#onAwaits(execution);
  }

  #onAwaits(execution: Execution): void {
    this.#awaiting += 1;
    this.events.emit('awaits', execution);
  }

  #remove(execution: Execution): void {
    const { run_id, row } = execution.log;
    if (this.#executions.get(run_id) !== execution) return;
    this.#executions.delete(run_id);
    if (row.status === 'awaiting') this.#awaiting -= 1;
    this.events.emit('removed', execution);
  }

  /**
   * Stops all runs within `shutdownGrace`. A durable run begins no more work. It is released for the next process when its
   * steps have ended, at the latest after that time. Other runs fail after that time. A store that fails is waited for as long
   * as by a request.
   */
  async stop(): Promise<void> {
    this.#state = 'stopping';
    const { shutdownGrace, requestTimeout } = this.#options.limits;
    for (const one of this.all())
      if (one.run.status === 'awaiting' && !one.durable) one.failWith(fail('run_interrupted').toJSON());
    this.events.emit('stopping');
    if (shutdownGrace > 0) await this.#waitAtMost(shutdownGrace, Promise.all(this.all().map((one) => this.#left(one))));
    for (const one of this.all()) if (!one.durable) one.failWith(fail('run_interrupted').toJSON());
    await this.#waitAtMost(
      requestTimeout,
      this.#releaseDurable().then(() => this.#commits.drained()),
    );
    this.#state = 'stopped';
  }

  /** Resolves when a run has left this process: a durable one when its steps have ended, any other when it is final. */
  async #left(execution: Execution): Promise<void> {
    const { log, durable } = execution;
    if (!durable) return new Promise((resolve) => log.onClosed(resolve));
    await execution.drained();
    // First, so that its readers get what it has recorded, before their streams end. Where it fails, `#onLogClosed` handles it.
    await log.flushed().catch(() => undefined);
    if (log.outcome === undefined) await this.release(execution);
  }

  // In a loop: more durable runs may be added while these are being flushed.
  async #releaseDurable(): Promise<void> {
    const durable = (): Execution[] => this.all().filter((one) => one.durable);
    for (let some = durable(); some.length > 0; some = durable()) {
      await Promise.all(some.map((one) => this.release(one)));
    }
  }

  async #waitAtMost(milliseconds: number, done: Promise<unknown>): Promise<void> {
    // The work may go on after that; nothing waits for it.
    await within(milliseconds, done).catch(() => undefined);
  }
}
