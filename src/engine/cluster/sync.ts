import type { RunNotification, RunRow, Store } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { PeriodicTask } from '../periodic.ts';
import { type Executor, needsExecution } from '../runs/executor.ts';
import { type AcceptedReply, type ForwardedReply, forwardedReplies } from '../runs/forward-reply.ts';
import type { RunServices } from '../runs/run-services.ts';

const page = 1000;
/** Runs that are looked at together. */
const concurrentChecks = 16;
/** The statuses of runs that a node has to execute, or that wait for their turn. */
const executableStatuses: readonly RunStatus[] = ['created', 'in-progress', 'cancelling'];

/**
 * The other nodes of the same store: listens for notifications of what they write, and polls for missed notifications
 * and for runs without a node.
 */
export class Sync {
  readonly #services: RunServices;
  readonly #executor: Executor;
  readonly #onFailure: (error: unknown) => void;
  readonly #polls: readonly PeriodicTask[];
  /** The last event of each run at the last poll: one that has written since then has learnt whose it is. */
  #seen = new Map<string, number>();
  #unsubscribe: (() => Promise<void>) | undefined;

  /** `onFailure` is told of a store that does not answer. */
  constructor(services: RunServices, executor: Executor, onFailure: (error: unknown) => void) {
    const { pollInterval, lease } = services.executions.limits;
    this.#services = services;
    this.#executor = executor;
    this.#onFailure = onFailure;
    this.#polls = [
      new PeriodicTask(pollInterval, () => this.#poll(), onFailure),
      new PeriodicTask(lease, () => this.#offerUnexecuted(), onFailure),
    ];
  }

  /** Resolves when it listens. @throws where the store cannot be watched */
  async start(): Promise<void> {
    this.#unsubscribe = await this.#services.store.watch?.((moves) => this.#onNotifications(moves));
    for (const poll of this.#polls) poll.start();
  }

  /** Resolves when no poll is under way. */
  async stop(): Promise<void> {
    await this.#unsubscribe?.();
    await Promise.all(this.#polls.map((poll) => poll.stop()));
  }

  #onNotifications(moves: readonly RunNotification[] | undefined): void {
    const { active, queue } = this.#services;
    if (moves === undefined) active.notifyAll();
    for (const move of moves ?? []) {
      const execution = active.local(move.run_id);
      active.onWritten(move);
      if (execution !== undefined) void this.#acceptReply(execution).catch(this.#onFailure);
      if (move.final) queue.onRunFinal(move.run_id);
    }
  }

  /** Another node may have left a reply for a run that awaits here. */
  #acceptReply(execution: Execution): Promise<void> {
    return acceptForwardedReply(this.#services.store, execution);
  }

  /** Whether the runs that said nothing since the last poll are still this node's, and whether they were answered. */
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
    const execution = await this.#services.active.get(run_id);
    if (execution !== undefined) await this.#acceptReply(execution);
  }

  /** Runs whose dispatch was lost, or that wait for a turn which a dead node was to give them. Every node looks. */
  async #offerUnexecuted(): Promise<void> {
    const { store, active, queue, executions } = this.#services;
    const young = new Date(Date.now() - executions.limits.lease).toISOString();
    for (const status of executableStatuses) {
      for (let before: string | undefined; ; ) {
        const rows: RunRow[] = await store.runs({ status }, before, page);
        const found = rows.filter((row) => row.created_at < young && active.local(row.run_id) === undefined);
        await this.#executor.offerAll(found.filter(needsExecution));
        for (const row of found) if (row.queued_at !== null) await queue.add(row.session_id);
        before = rows.at(-1)?.run_id;
        if (rows.length < page) break;
      }
    }
  }
}

/** Gives a run that awaits in the memory of this node the reply that another node has left for it, where there is one. */
async function acceptForwardedReply(store: Store, execution: Execution): Promise<void> {
  const { durable, run, log } = execution;
  if (durable || run.status !== 'awaiting' || log.outcome !== undefined) return;
  const { run_id, snapshot } = log.row;
  const left = (await forwardedReplies(store, run_id)).find(
    (entry): entry is ForwardedReply => 'at' in entry && entry.at === snapshot,
  );
  // It may have gone on, or left, while the mailbox was read.
  const same = execution.run.status === 'awaiting' && log.row.snapshot === snapshot && log.outcome === undefined;
  if (left === undefined || !same) return;
  const taken: AcceptedReply = { taken: left.left };
  execution.resume(left.reply, { ...left.extras, journal: [JSON.stringify(taken)] });
}
