import type { IfBusy } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunRow, Store, When, Write } from '../../core/store.ts';
import type { CommitOne } from '../store-access.ts';

/** How a new run comes into its session: at once or queued, and the condition under which the store takes it. */
export interface Admission {
  readonly queued: boolean;
  readonly when?: When;
}

export interface SessionQueueOptions {
  /** Runs of one session that may be unfinished when one more is queued; 0 for any number. */
  readonly limit: number;
  readonly commitOne: CommitOne;
  /** Offers a run whose turn has come to be executed. */
  readonly offer: (run_id: string) => void;
  readonly stopping: () => boolean;
}

/**
 * The queue of a session is in the store: its runs that are not final, in the order of their ids. A run that waits has
 * `queued_at`, and begins when it is the first. That it is the first then, and that it is the last when it comes, are
 * conditions of writes, so any node can take each step, and its cost does not grow with the queue. What is here is
 * which sessions have a queue that this process looks after, and which run each of them waits for.
 */
export class SessionQueue {
  readonly #store: Store;
  readonly #options: SessionQueueOptions;
  /** By session, the run that its queue waits for; empty until that is known. */
  readonly #blockingRuns = new Map<string, string>();
  /** The sessions of those runs. */
  readonly #blockedSessions = new Map<string, string>();

  constructor(store: Store, options: SessionQueueOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Where a new run goes. @throws RivuletError `session_busy`, `queue_full`, `store_unavailable` */
  async admit(session_id: string, if_busy: IfBusy): Promise<Admission> {
    if (if_busy === 'parallel') return { queued: false };
    const [first] = await this.#store.unfinished(session_id, '', 1);
    if (first === undefined) return { queued: false, when: 'alone' };
    if (if_busy === 'reject') throw fail('session_busy', session_id, first.run_id);
    const { limit } = this.#options;
    if (limit > 0 && (await this.#store.count(session_id)) >= limit) throw fail('queue_full', session_id, limit);
    return { queued: true, when: 'last' };
  }

  /** A run of the session is queued: begins it if it is the first. */
  async add(session_id: string): Promise<void> {
    // Not the first, then: the session waits for that.
    if ((this.#blockingRuns.get(session_id) ?? '') !== '') return;
    this.#blockingRuns.set(session_id, '');
    await this.#startNext(session_id);
  }

  /** A run is final, here or on another node: the next one of its session begins. */
  onRunFinal(run_id: string): void {
    const session_id = this.#blockedSessions.get(run_id);
    // What fails is done at the next `checkAll`.
    if (session_id !== undefined) void this.#startNext(session_id).catch(() => undefined);
  }

  /** A notification may have been lost, or the store have failed: looks at all queues. */
  async checkAll(): Promise<void> {
    for (const session_id of [...this.#blockingRuns.keys()]) await this.#startNext(session_id);
  }

  async #startNext(session_id: string): Promise<void> {
    while (!this.#options.stopping()) {
      const [first] = await this.#store.unfinished(session_id, '', 1);
      this.#setBlockingRun(session_id, first?.run_id);
      if (first === undefined) return;
      if (first.queued_at !== null) {
        if (await this.#start(first)) return;
      } else {
        // It may have ended before this process listened for its end.
        const now = await this.#store.run(first.run_id);
        if (now !== undefined && !isFinal(now.status)) return;
      }
    }
  }

  /** That its turn has come is durable before its agent does anything. Answers whether it begins. */
  async #start(row: RunRow): Promise<boolean> {
    const { epoch, last } = row;
    const begun: RunRow = { ...row, queued_at: null, epoch: epoch + 1 };
    const { commitOne, offer } = this.#options;
    const write: Write = { row: begun, from: epoch, expect: last, lines: [], when: 'first' };
    return (await commitOne(write, () => offer(row.run_id))) === 'taken';
  }

  #setBlockingRun(session_id: string, run_id: string | undefined): void {
    this.#blockedSessions.delete(this.#blockingRuns.get(session_id) ?? '');
    if (run_id === undefined) {
      this.#blockingRuns.delete(session_id);
    } else {
      this.#blockingRuns.set(session_id, run_id);
      this.#blockedSessions.set(run_id, session_id);
    }
  }
}
