import { LRUCache } from 'lru-cache';
import { errorOf, fail, RivuletError } from '../../core/errors.ts';
import { needsAgent } from '../../core/ports/run-claims.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { isFinal } from '../../core/run-state.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { Run } from '../../schema/run.ts';
import { Execution } from '../execution/execution.ts';
import type { Recording } from '../execution/replay.ts';
import { journalOf } from '../log/journal.ts';
import { RunLog } from '../log/run-log.ts';
import { parseLine, readLines } from '../log/stored-run.ts';
import { eachPart } from '../store/each-part.ts';
import { pages } from '../store/pages.ts';
import { retryUntilAvailable } from '../store/store-calls.ts';
import { endStoredRun } from './cancel.ts';
import { acceptWhenLive } from './forward.ts';
import { unpark } from './retry.ts';
import type { RunServices } from './run-services.ts';
import { Suspects } from './suspects.ts';

const page = 1000;
/** Re-entered runs that have a line of the log each, between two reports of their number. */
const maxNamed = 20;

/** Executes runs in this process: new ones, and those that an earlier process left unfinished. */
export class Executor {
  readonly #services: RunServices;
  /** Runs that are being entered, so that none is entered twice at once. */
  readonly #entering = new Map<string, Promise<void>>();
  /** Runs whose agent is not here, each of which is in the log: other nodes may offer them many times. */
  readonly #warnedOf = new LRUCache<string, true>({ max: 1_000 });
  readonly suspects: Suspects;
  /** Called when a run leaves this process. */
  readonly #leaving = new Map<string, () => void>();
  /** Runs that were re-entered since the last report of their number, and the last one of them. */
  #reentries = { count: 0, last: '' };

  constructor(services: RunServices) {
    this.#services = services;
    const { active, dispatcher, offers } = services;
    active.events.on('failed', (log) => this.#onFailed(log));
    active.events.on('removed', ({ log }) => {
      this.#leaving.get(log.run_id)?.();
      // A request of this process has written to the run. The run was perhaps offered before its execution heard of that.
      if (!dispatcher.shared && log.outcome === 'fenced') offers.postpone(log.run_id);
    });
    active.events.on('awaits', () => dispatcher.onSlotFree());
    const { attempts } = services.executions.limits;
    this.suspects = new Suspects(active, dispatcher.shared, attempts, (run_id) => this.#enter(run_id));
  }

  /** Executes a run that was offered, in any status; resolves when the run has left this process. */
  readonly execute = async (run_id: string): Promise<'freed' | 'owned'> => {
    const { active, dispatcher, offers } = this.#services;
    let live = this.#liveExecution(run_id);
    if (live === undefined) {
      await this.#enter(run_id);
      if (dispatcher.shared) {
        dispatcher.onSlotFree();
        await this.suspects.whenAdmitted(run_id);
        await this.#entering.get(run_id);
      }
      live = this.#liveExecution(run_id);
    }
    // This process has created the run. An entry starts its own execution.
    if (live !== undefined) {
      offers.forget(run_id);
      await this.#start(live);
    }
    const entered = active.local(run_id);
    // More than once where it left and was entered again meanwhile.
    while (dispatcher.shared && (this.#entering.has(run_id) || active.local(run_id) !== undefined)) {
      await this.#entering.get(run_id);
      if (active.local(run_id) !== undefined) await this.#left(run_id);
    }
    return entered?.log.final === true || entered?.log.isReleased === true ? 'freed' : 'owned';
  };

  /** How many of the runs that are executed here take no slot: they await, or wait for their turn. */
  readonly withoutSlot = (): number => this.#services.active.awaiting + this.suspects.withoutSlot;

  async #left(run_id: string): Promise<void> {
    await new Promise<void>((resolve) => this.#leaving.set(run_id, resolve));
    this.#leaving.delete(run_id);
  }

  /** A run's execution in memory that may work; undefined while an entry of the run is under way, which starts its own. */
  #liveExecution(run_id: string): Execution | undefined {
    const execution = this.#entering.has(run_id) ? undefined : this.#services.active.local(run_id);
    return execution?.log.outcome === undefined ? execution : undefined;
  }

  /**
   * Enters all runs that an earlier process left unfinished, oldest first, and calls back for each. Suspects wait for their
   * turn.
   */
  async recover(onLeft: (row: RunRow) => void): Promise<void> {
    const { store, active, executions } = this.#services;
    const read = (after?: RunRow) =>
      retryUntilAvailable(executions.limits.storeTimeout, async () =>
        active.stopping ? [] : store.unfinished(undefined, after?.run_id ?? '', page),
      );
    for await (const rows of pages(page, read)) {
      // Before any run is entered, because clients may connect meanwhile, which changes the rows.
      for (const row of rows) onLeft(row);
      for (const row of rows) if (row.rests_at === null) await this.#enter(row.run_id);
    }
  }

  /**
   * Tries the parked runs of the store again, once: this process may have the right agents. Runs that were parked after
   * `since` are left out: a process of the same deploy has tried them. Called once, when the process starts.
   */
  async retryParked(since: string): Promise<void> {
    await eachPart(this.#services.store, (part) => this.#retryParkedOf(part, since));
  }

  async #retryParkedOf(part: number, since: string): Promise<void> {
    const { store, active, dispatcher, executions } = this.#services;
    const read = (before?: RunRow) =>
      retryUntilAvailable(executions.limits.storeTimeout, () =>
        store.runs({ parked: true, part }, before?.run_id, page),
      );
    for await (const rows of pages(page, read)) {
      for (const row of rows) {
        if (active.stopping) return;
        if ((row.rests_at ?? '') > since || this.#lacksAgent(row) || !(await unpark(this.#services, row))) continue;
        // One after the other.
        if (!dispatcher.shared) await this.#enter(row.run_id);
      }
    }
  }

  /**
   * Whether this process leaves a run in the store as it is, because it does not have the run's agent. A process that has
   * the agent goes on with the run.
   */
  #lacksAgent(row: RunRow): boolean {
    return needsAgent(row) && this.#services.executions.registry.find(row.agent_name) === undefined;
  }

  #warnOfMissingAgent({ run_id, agent_name }: RunRow): void {
    if (this.#warnedOf.has(run_id)) return;
    this.#warnedOf.set(run_id, true);
    this.#services.executions
      .logFor(run_id)
      .warn(`waits for its agent ${agent_name}, which is not here; start a server that has it, or cancel the run`);
  }

  /**
   * The store failed while this process had the run: `Offers.repeat` offers it when the store is back. Where the store can
   * never take a write of a run that is not durable, the run ends at once: its agent must not begin again.
   */
  #onFailed({ run_id, outcome, row }: RunLog): void {
    this.#services.offers.drop(run_id);
    if (outcome === 'rejected' && row.tier !== 'durable') void this.#endRejected(run_id);
  }

  /** Never rejects: where the store fails, the run is offered again later. */
  async #endRejected(run_id: string): Promise<void> {
    try {
      const row = await this.#services.store.run(run_id);
      if (row !== undefined && !isFinal(row.status))
        await this.#end(row, row.status === 'cancelling' ? undefined : fail('store_failed').toJSON());
      this.#services.offers.forget(run_id);
    } catch (error) {
      this.#services.executions.logFor(run_id).warn(`could not be ended; will retry: ${String(error)}`);
    }
  }

  /**
   * Enters a run, once at a time. Without other nodes, an offer that comes during an entry waits for the entry, and then enters
   * the run again: the entry may have read the run before the write that is offered. A shared dispatcher offers the run again
   * when it is released.
   */
  async #enter(run_id: string): Promise<void> {
    if (!this.#services.dispatcher.shared) await this.#entering.get(run_id);
    // All offers that have waited share one entry, which reads the run after them.
    const entering = this.#entering.get(run_id);
    if (entering !== undefined) return entering;
    const entered = this.#load(run_id).finally(() => this.#entering.delete(run_id));
    this.#entering.set(run_id, entered);
    return entered;
  }

  /**
   * Reads the run anew, because an earlier entry may have written to it since it was listed or offered. Where the lease has ended
   * meanwhile, another node may have taken the run over before it was read. Never rejects: where the store fails, the run is
   * offered again later.
   */
  async #load(run_id: string): Promise<void> {
    const { store, executions, dispatcher, offers } = this.#services;
    const since = dispatcher.leasedSince(run_id);
    let row: RunRow | undefined;
    try {
      row = await store.run(run_id);
      if (since === undefined || since !== dispatcher.leasedSince(run_id)) return offers.forget(run_id);
      if (row !== undefined && !isFinal(row.status)) await this.#reEnter(row, offers.isDropped(run_id));
      offers.forget(run_id);
    } catch (error) {
      const kind = error instanceof RivuletError ? error.kind : undefined;
      // The run was written to meanwhile. On shared stores another execution has it, or it is offered when its lease ends.
      if (kind === 'conflict') return dispatcher.shared ? offers.forget(run_id) : offers.postpone(run_id);
      if (row === undefined || kind === 'store_unavailable' || kind === 'store_failed') {
        executions.logFor(run_id).warn(`could not be re-entered; will retry: ${String(error)}`);
        return offers.postpone(run_id);
      }
      // One run that cannot be read must not stop the others.
      executions.logFor(run_id).error(`could not be re-entered: ${String(error)}`);
      await this.#end(row, errorOf(error)).catch(() => offers.postpone(run_id));
    }
  }

  async #reEnter(row: RunRow, wasDropped: boolean): Promise<void> {
    const { store, active, dispatcher, executions, queue } = this.#services;
    const { attempts } = executions.limits;
    if (active.stopping || active.local(row.run_id) !== undefined) return;
    if (row.rests_at !== null && !isDue(row)) return;
    // Before the queue: a queued run may have been cancelled.
    if (row.status === 'cancelling' && !mayCleanUp(row)) return this.#end(row);
    if (row.queued_at !== null) return queue.add(row.session_id);
    if (this.#lacksAgent(row)) return this.#warnOfMissingAgent(row);
    // A run that was only created can still be started.
    if (row.tier !== 'durable' && row.status !== 'created')
      return this.#end(row, fail(wasDropped ? 'store_failed' : 'run_interrupted').toJSON());
    if (row.attempts >= attempts && attempts > 0)
      return this.#end(row, fail('recovery_exhausted', row.attempts).toJSON());
    if (!this.suspects.admitOrQueue(row)) return;
    if (row.status !== 'created') this.#reportReentry(row);
    const execution = await recoverRun(this.#services, row, { attempts: row.attempts + 1 });
    if (execution === undefined) return;
    await this.#start(execution);
    // Only a run that has begun has got anything from another node.
    if (!dispatcher.shared || row.status === 'created') return;
    acceptWhenLive(store, execution).catch((error: unknown) => {
      executions.logFor(row.run_id).warn(`what other nodes have forwarded could not be read: ${String(error)}`);
    });
  }

  /** Some are named before their agents are called: an agent may hold the event loop, or end the process. */
  #reportReentry({ run_id, agent_name, attempts }: RunRow): void {
    this.#services.counts.of(agent_name).reentries += 1;
    this.#reentries.count += 1;
    this.#reentries.last = run_id;
    if (this.#reentries.count > maxNamed) return;
    const log = this.#services.executions.logFor(run_id);
    if (attempts === 0) log.info(`is re-entered: agent ${agent_name}`);
    else log.warn(`is re-entered: agent ${agent_name} (attempt ${attempts + 1})`);
  }

  /** Logs how many runs were re-entered without a line of their own. Called periodically. */
  reportReentries(): void {
    const { count, last } = this.#reentries;
    this.#reentries = { count: 0, last: '' };
    if (count > maxNamed)
      this.#services.executions.logFor(last).info(`is re-entered, as the last of ${count - maxNamed} more runs`);
  }

  /** Starts an execution. A process that is stopping releases it instead, if another one can go on with it. */
  async #start(execution: Execution): Promise<void> {
    const { active } = this.#services;
    const releasable = execution.durable || execution.run.status === 'created';
    if (active.stopping && releasable) await active.release(execution);
    else execution.start();
  }

  #end(row: RunRow, error?: ErrorBody): Promise<void> {
    return endStoredRun(this.#services, row, error);
  }
}

/**
 * Re-enters a stored run with a new epoch, which fences any earlier execution. When the execution is started, its agent
 * first replays the log and the journal. Ends a run whose first write the store can never take, and returns undefined. Hands
 * the run back where its journal has grown before the fence.
 * @throws RivuletError `agent_unknown`, `log_removed`, `log_damaged`, `conflict`, `store_failed`, `store_unavailable`
 */
async function recoverRun(services: RunServices, row: RunRow, change: Partial<RunRow>): Promise<Execution | undefined> {
  const { store, commits, active, executions, dispatcher } = services;
  const agent = executions.registry.get(row.agent_name);
  const stored = await readStored(store, row);
  const due = dueOf(row, stored.recording);
  const log = new RunLog(
    commits.of(row.run_id),
    { ...row, ...change, due, rests_at: null, parked: null, epoch: row.epoch + 1 },
    { from: row.epoch },
  );
  // The execution of an epoch has the run.
  if (dispatcher.node !== undefined) log.attach({ node: dispatcher.node });
  const execution = new Execution(agent, stored.run, stored.input, log, executions, stored.recording);
  try {
    await active.add(execution);
  } catch (error) {
    if (log.outcome !== 'rejected') throw error;
    await endStoredRun(services, row, fail('store_failed').toJSON());
    return undefined;
  }
  // The node before may have kept a result after the journal was read. Now it is fenced, and can add nothing any more.
  if (dispatcher.shared && row.status !== 'created') {
    const kept = await journalOf(store, row.run_id).catch(() => undefined);
    if (kept?.length !== stored.recording.journal.length) {
      await active.release(execution);
      throw fail('conflict', row.run_id);
    }
  }
  return execution;
}

/** When the question of a run that awaits expires. The row may have an earlier time: see `ActiveRuns.release`. */
function dueOf({ run_id, status, snapshot }: RunRow, { lines }: Recording): string | null {
  if (status !== 'awaiting') return null;
  // The recording begins with event 2.
  const event = parseLine<RunEvent>(run_id, lines[snapshot - 2] ?? '');
  return event.run.await_request?.expires_at ?? null;
}

/** @throws RivuletError `log_removed`, `log_damaged`, and any error of the store */
async function readStored(store: Store, row: RunRow): Promise<{ run: Run; input: RunInput; recording: Recording }> {
  const { run_id } = row;
  const [[first = '', ...lines], journal, input = []] = await Promise.all([
    readLines(store, row, 0),
    journalOf(store, run_id),
    store.input(run_id),
  ]);
  const event = parseLine<Event>(run_id, first);
  if (!('run' in event)) throw fail('log_damaged', run_id);
  return { run: event.run, input, recording: { lines, journal } };
}

/** Whether the agent of a cancelled run has begun, so that it is re-entered to clean up. */
const mayCleanUp = ({ tier, last }: RunRow): boolean => tier === 'durable' && last > 1;

/** Whether a run that rests has slept for long enough. */
const isDue = ({ due, parked }: RunRow): boolean => parked === null && due !== null && due <= new Date().toISOString();
