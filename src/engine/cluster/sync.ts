import { openStatuses } from '../../core/run-state.ts';
import type { RunNotification, RunRow } from '../../core/store.ts';
import type { RunChanges } from '../changes/run-changes.ts';
import { PeriodicTask } from '../periodic.ts';
import type { ConnectedReaders } from '../runs/connected-readers.ts';
import { type Executor, needsExecution } from '../runs/executor.ts';
import { acceptForwarded } from '../runs/forward.ts';
import type { RunServices } from '../runs/run-services.ts';

const page = 1000;
/** Runs that are checked at once. */
const concurrentChecks = 16;
/** The statuses of runs that a node has to execute, or that are queued. */
const executableStatuses = openStatuses.filter((status) => status !== 'awaiting');

/**
 * Keeps this node in step with the other nodes of a shared store: it listens for notifications of their writes, and
 * polls for missed notifications and for runs that no node executes.
 */
export class Sync {
  readonly #services: RunServices;
  readonly #executor: Executor;
  readonly #changes: RunChanges;
  readonly #readers: ConnectedReaders;
  readonly #onFailure: (error: unknown) => void;
  readonly #polls: readonly PeriodicTask[];
  /** By run, its last event at the last poll. A run that has written since then would have been fenced. */
  #seen = new Map<string, number>();
  #unsubscribe: (() => Promise<void>) | undefined;

  /** `onFailure` receives the errors of the store. */
  constructor(
    services: RunServices,
    executor: Executor,
    changes: RunChanges,
    readers: ConnectedReaders,
    onFailure: (error: unknown) => void,
  ) {
    const { pollInterval, lease } = services.executions.limits;
    this.#services = services;
    this.#executor = executor;
    this.#changes = changes;
    this.#readers = readers;
    this.#onFailure = onFailure;
    this.#polls = [
      new PeriodicTask(pollInterval, () => this.#poll(), onFailure),
      new PeriodicTask(lease, () => this.#offerUnexecuted(), onFailure),
    ];
  }

  /** Resolves when notifications arrive. @throws any error of the store */
  async start(): Promise<void> {
    this.#unsubscribe = await this.#services.store.watch?.((notifications) => this.#onNotifications(notifications));
    for (const poll of this.#polls) poll.start();
  }

  /** Resolves when no poll is in progress. */
  async stop(): Promise<void> {
    await this.#unsubscribe?.();
    await Promise.all(this.#polls.map((poll) => poll.stop()));
  }

  #onNotifications(notifications: readonly RunNotification[] | undefined): void {
    const { store, active, queue } = this.#services;
    this.#changes.onNotifications(notifications);
    if (notifications === undefined) {
      active.notifyAll();
      queue.onMissedNotifications();
    }
    for (const notification of notifications ?? []) {
      const { run_id, final, forwarded } = notification;
      active.onWritten(notification);
      const execution = forwarded ? active.local(run_id) : undefined;
      if (execution !== undefined) void acceptForwarded(store, execution).catch(this.#onFailure);
      else if (forwarded) this.#executor.onForwarded(run_id);
      if (final) queue.onRunFinal(run_id);
    }
  }

  /**
   * Checks the runs that appended nothing since the last poll: this node may have lost them, or have missed a reply.
   */
  async #poll(): Promise<void> {
    const { active } = this.#services;
    active.notifyAll();
    const seen = new Map<string, number>();
    const idle: string[] = [];
    for (const { log } of active.all()) {
      const { run_id, last } = log.row;
      if (this.#seen.get(run_id) === last) idle.push(run_id);
      seen.set(run_id, last);
    }
    this.#seen = seen;
    for (let from = 0; from < idle.length; from += concurrentChecks) {
      await Promise.all(idle.slice(from, from + concurrentChecks).map((run_id) => this.#check(run_id)));
    }
  }

  async #check(run_id: string): Promise<void> {
    const { store, active } = this.#services;
    const execution = await active.get(run_id);
    // A cancel whose notification was lost is not looked for: the node that has forwarded it fences this one.
    if (execution?.run.status === 'awaiting') await acceptForwarded(store, execution);
  }

  /**
   * Offers runs whose dispatch was lost, starts queues that a dead node looked after, and cancels runs whose readers were at
   * dead nodes. Every node does so.
   */
  async #offerUnexecuted(): Promise<void> {
    const { store, active, queue, executions } = this.#services;
    this.#readers.renew();
    const newest = new Date(Date.now() - executions.limits.lease).toISOString();
    for (const status of executableStatuses) {
      for (let before: string | undefined; ; ) {
        const rows: RunRow[] = await store.runs({ status }, before, page);
        const found = rows.filter((row) => row.created_at < newest && active.local(row.run_id) === undefined);
        await this.#executor.offerAll(found.filter(needsExecution));
        for (const row of found) if (row.queued_at !== null) await queue.add(row.session_id);
        for (const row of rows) await this.#readers.check(row);
        before = rows.at(-1)?.run_id;
        if (rows.length < page) break;
      }
    }
  }
}
