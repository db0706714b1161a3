import type { Moved, RunRow, Store } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import type { Limits } from '../limits.ts';
import type { LiveRuns } from '../runs/active-runs.ts';
import { type Executor, isLoose } from '../runs/executor.ts';
import type { SessionTurns } from '../runs/session-queue.ts';
import type { LeftReplies } from './reply-mailbox.ts';

const page = 1000;
/** Those of runs that somebody has to execute. */
const loose: readonly RunStatus[] = ['created', 'in-progress', 'cancelling'];

/** What this process's share in the work needs of the engine. */
export interface Share {
  readonly store: Store;
  readonly live: LiveRuns;
  readonly turns: SessionTurns;
  readonly executor: Executor;
  readonly left: LeftReplies;
  readonly limits: Limits;
  /** Told of a store that does not answer. */
  readonly failed: (error: unknown) => void;
}

/**
 * The other processes of the same store: hears of what they write, as a hint, and looks from time to time whether
 * a hint was lost, or a run that one of them left lies about.
 */
export class Neighbours {
  readonly #share: Share;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #looking = new Set<Promise<void>>();
  #deafen: (() => Promise<void>) | undefined;

  constructor(share: Share) {
    this.#share = share;
  }

  /** Resolves when it hears. @throws where the store cannot be watched */
  async start(): Promise<void> {
    const { store, limits } = this.#share;
    this.#deafen = await store.watch?.((moves) => this.#heard(moves));
    this.#every(limits.lookEvery, () => this.#look());
    this.#every(limits.lease, () => this.#findLoose());
  }

  /** Hears and looks no more; resolves when no look is under way. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#deafen?.();
    await Promise.all(this.#looking);
  }

  #every(milliseconds: number, look: () => Promise<void>): void {
    let looking: Promise<void> | undefined;
    const timer = setInterval(() => {
      if (looking !== undefined) return;
      const mine = look()
        .catch(this.#share.failed)
        .finally(() => {
          this.#looking.delete(mine);
          looking = undefined;
        });
      looking = mine;
      this.#looking.add(mine);
    }, milliseconds);
    timer.unref();
    this.#timers.push(timer);
  }

  #heard(moves: readonly Moved[] | undefined): void {
    const { live, turns } = this.#share;
    if (moves === undefined) live.missed();
    for (const move of moves ?? []) {
      const execution = live.here(move.run_id);
      live.moved(move);
      if (execution !== undefined) void this.#takeReply(execution).catch(this.#share.failed);
      else if (move.final) turns.ended(move.run_id);
    }
  }

  /** Somebody may have answered a pinned run here, in another process. */
  async #takeReply(execution: Execution): Promise<void> {
    const { durable, run, log } = execution;
    if (!durable && run.status === 'awaiting' && !log.detached) await this.#share.left.take(execution);
  }

  async #look(): Promise<void> {
    const { live, turns } = this.#share;
    live.missed();
    await turns.recheck();
    for (const { run } of live.all()) {
      // Whoever works finds out when it writes; who awaits has to ask.
      const execution = run.status === 'awaiting' ? await live.get(run.run_id) : undefined;
      if (execution !== undefined) await this.#takeReply(execution);
    }
  }

  /** Runs whose dispatch was lost, or whose turn a process that is gone was to wait for. Every process looks. */
  async #findLoose(): Promise<void> {
    const { store, live, executor, limits } = this.#share;
    const young = new Date(Date.now() - limits.lease).toISOString();
    for (const status of loose) {
      for (let before: string | undefined; ; ) {
        const rows: RunRow[] = await store.runs({ status }, before, page);
        const found = rows.filter((row) => row.created_at < young && live.here(row.run_id) === undefined);
        await executor.offerAll(found.filter(isLoose));
        for (const row of found) if (row.queued_at !== null) await executor.queueAgain(row);
        before = rows.at(-1)?.run_id;
        if (rows.length < page) break;
      }
    }
  }
}
