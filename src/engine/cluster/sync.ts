import type { Moved, RunRow } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { PeriodicTask } from '../periodic.ts';
import { type Executor, isLoose } from '../runs/executor.ts';
import type { RunServices } from '../runs/run-services.ts';
import { takeReply } from './reply-mailbox.ts';

const page = 1000;
/** Runs that are looked at together. */
const together = 16;
/** The statuses of runs that a node has to execute, or that wait for their turn. */
const loose: readonly RunStatus[] = ['created', 'in-progress', 'cancelling'];

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
      new PeriodicTask(lease, () => this.#findLoose(), onFailure),
    ];
  }

  /** Resolves when it listens. @throws where the store cannot be watched */
  async start(): Promise<void> {
    this.#unsubscribe = await this.#services.store.watch?.((moves) => this.#notified(moves));
    for (const poll of this.#polls) poll.start();
  }

  /** Resolves when no poll is under way. */
  async stop(): Promise<void> {
    await this.#unsubscribe?.();
    await Promise.all(this.#polls.map((poll) => poll.stop()));
  }

  #notified(moves: readonly Moved[] | undefined): void {
    const { active, queue } = this.#services;
    if (moves === undefined) active.missed();
    for (const move of moves ?? []) {
      const execution = active.here(move.run_id);
      active.moved(move);
      if (execution !== undefined) void this.#takeReply(execution).catch(this.#onFailure);
      if (move.final) queue.ended(move.run_id);
    }
  }

  /** Another node may have left a reply for a run that awaits here. */
  #takeReply(execution: Execution): Promise<void> {
    return takeReply(this.#services.store, execution);
  }

  /** Whether the runs that said nothing since the last poll are still this node's, and whether they were answered. */
  async #poll(): Promise<void> {
    const { active } = this.#services;
    active.missed();
    const seen = new Map<string, number>();
    const silent: string[] = [];
    for (const { log } of active.all()) {
      const { run_id, last } = log.row;
      if (this.#seen.get(run_id) === last) silent.push(run_id);
      seen.set(run_id, last);
    }
    this.#seen = seen;
    for (let from = 0; from < silent.length; from += together) {
      await Promise.all(silent.slice(from, from + together).map((run_id) => this.#check(run_id)));
    }
  }

  async #check(run_id: string): Promise<void> {
    const execution = await this.#services.active.get(run_id);
    if (execution !== undefined) await this.#takeReply(execution);
  }

  /** Runs whose dispatch was lost, or that wait for a turn which a dead node was to give them. Every node looks. */
  async #findLoose(): Promise<void> {
    const { store, active, queue, executions } = this.#services;
    const young = new Date(Date.now() - executions.limits.lease).toISOString();
    for (const status of loose) {
      for (let before: string | undefined; ; ) {
        const rows: RunRow[] = await store.runs({ status }, before, page);
        const found = rows.filter((row) => row.created_at < young && active.here(row.run_id) === undefined);
        await this.#executor.offerAll(found.filter(isLoose));
        for (const row of found) if (row.queued_at !== null) await queue.add(row.session_id);
        before = rows.at(-1)?.run_id;
        if (rows.length < page) break;
      }
    }
  }
}
