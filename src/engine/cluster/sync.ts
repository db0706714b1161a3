import type { RunNotification, RunRow } from '../../core/ports/run-store.ts';
import { isSettled, openStatuses } from '../../core/run-state.ts';
import type { RunChanges } from '../changes/run-changes.ts';
import type { Executor } from '../runs/executor.ts';
import { acceptForwarded } from '../runs/forward.ts';
import type { RunServices } from '../runs/run-services.ts';
import { eachPart, idsOfPart } from '../store/each-part.ts';
import type { Followed } from '../store/followed.ts';
import { pages } from '../store/pages.ts';
import { PeriodicTask } from '../time/periodic.ts';
import type { ConnectedReaders } from './connected-readers.ts';

const page = 1000;
/** Runs of a part of the store that are checked at once. */
const concurrentChecks = 16;
/** The statuses of runs that a node has to execute, or that are queued. */
const executableStatuses = openStatuses.filter((status) => !isSettled(status));

/** The parts of the engine that hear of other nodes. */
interface SyncServices
  extends Pick<RunServices, 'store' | 'active' | 'lookup' | 'dispatcher' | 'queue' | 'executions'> {
  readonly changes: RunChanges;
  readonly readers: ConnectedReaders;
  readonly followed: Followed;
}

/**
 * Keeps this node in step with the other nodes of a shared store: it listens for notifications of their writes, and
 * polls for missed notifications.
 */
export class Sync {
  readonly #services: SyncServices;
  readonly #executor: Executor;
  readonly #onFailure: (error: unknown) => void;
  readonly #polls: readonly PeriodicTask[];
  /** By run, its last event at the last poll. A run that has written since then would have been fenced. */
  #seen = new Map<string, number>();

  /** `onFailure` receives the errors of the store. */
  constructor(services: SyncServices, executor: Executor, onFailure: (error: unknown) => void) {
    const { pollInterval, lease } = services.executions.limits;
    this.#services = services;
    this.#executor = executor;
    this.#onFailure = onFailure;
    this.#polls = [
      new PeriodicTask(pollInterval, () => this.#poll(), onFailure),
      // Without a renewal for two leases, other nodes take this node's readers for gone: see `ReaderNodes`.
      new PeriodicTask(lease, () => this.#tendOpenRuns(), onFailure),
    ];
  }

  /** Resolves when notifications arrive. @throws any error of the store */
  async start(): Promise<void> {
    const { store, followed } = this.#services;
    followed.start(await store.watch?.((notifications) => this.#onNotifications(notifications)));
    for (const poll of this.#polls) poll.start();
  }

  /** Resolves when no poll is in progress. */
  async stop(): Promise<void> {
    await this.#services.followed.stop();
    await Promise.all(this.#polls.map((poll) => poll.stop()));
  }

  #onNotifications(notifications: readonly RunNotification[] | undefined): void {
    const { store, active, lookup, dispatcher, queue, changes } = this.#services;
    changes.onNotifications(notifications);
    if (notifications === undefined) {
      lookup.notifyAll();
      queue.onMissedNotifications();
      dispatcher.onWaiting();
    }
    for (const notification of notifications ?? []) {
      const { run_id, final, forwarded, waits } = notification;
      active.onWritten(notification);
      const execution = forwarded ? active.local(run_id) : undefined;
      if (execution !== undefined) void acceptForwarded(store, execution).catch(this.#onFailure);
      else if (forwarded) this.#executor.suspects.admit(run_id);
      if (final) queue.onRunFinal(run_id);
      if (waits) dispatcher.onWaiting();
    }
  }

  /**
   * Checks the runs that appended nothing since the last poll: this node may have lost them, or have missed a reply.
   */
  async #poll(): Promise<void> {
    const { store, active, lookup } = this.#services;
    lookup.notifyAll();
    const seen = new Map<string, number>();
    const idle: string[] = [];
    for (const { log } of active.all()) {
      const { run_id, last } = log.row;
      if (this.#seen.get(run_id) === last) idle.push(run_id);
      seen.set(run_id, last);
    }
    this.#seen = seen;
    await eachPart(store, async (part) => {
      const some = idsOfPart(store, idle, part);
      for (let from = 0; from < some.length; from += concurrentChecks) {
        await Promise.all(some.slice(from, from + concurrentChecks).map((run_id) => this.#check(run_id)));
      }
    });
  }

  async #check(run_id: string): Promise<void> {
    const { store, active } = this.#services;
    const execution = await active.get(run_id);
    // A cancel whose notification was lost is not looked for: the node that has forwarded it fences this one.
    if (execution?.run.status === 'awaiting') await acceptForwarded(store, execution);
  }

  /**
   * Starts queues that a dead node looked after, and cancels runs whose readers were at dead nodes. Every node does so.
   */
  async #tendOpenRuns(): Promise<void> {
    const { store, queue, executions, readers } = this.#services;
    readers.renew();
    const newest = new Date(Date.now() - executions.limits.lease).toISOString();
    await eachPart(store, async (part) => {
      for (const status of executableStatuses) {
        const read = (before?: RunRow) => store.runs({ status, part }, before?.run_id, page);
        for await (const rows of pages(page, read)) {
          for (const row of rows) {
            if (row.queued_at !== null && row.created_at < newest) await queue.add(row.session_id);
            await readers.check(row);
          }
        }
      }
    });
  }
}
