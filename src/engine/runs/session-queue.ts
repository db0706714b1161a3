import type { IfBusy } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import { allChanges, type RunRow, type When, type Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { sessionIdOf } from '../../core/principal.ts';
import { isFinal } from '../../core/run-state.ts';
import type { GroupCommits } from '../log/group-commits.ts';
import { eachPart, idsOfPart } from '../store/each-part.ts';
import type { Followed } from '../store/followed.ts';
import type { Offers } from './offers.ts';

/** How a session admits a new run: at once or queued, and the condition for the write that creates it. */
export interface Admission {
  readonly queued: boolean;
  readonly when?: When;
}

export interface SessionQueueOptions {
  /** Unfinished runs of one session that may be there when one more is queued; 0 for no limit. */
  readonly limit: number;
  readonly commits: Pick<GroupCommits, 'of'>;
  readonly offers: Pick<Offers, 'offer'>;
  readonly stopping: () => boolean;
  readonly followed: Followed;
  /** The store can never take the start of a run: it is tried again with the next check. */
  readonly onRejected: (run_id: string, error: unknown) => void;
}

/** Queues that one check looks at without a reason. */
const queuesPerCheck = 200;

/**
 * The queue of a session is in the store: its runs that are not final, in the order of their ids. A run that waits has
 * `queued_at`, and starts when it is the first. Both steps are conditional writes: a run is queued only as the last
 * one, and starts only as the first one. So any node can take each step.
 * This process only keeps which of its sessions have a queue, and which run each queue waits for.
 */
export class SessionQueue {
  readonly #store: Store;
  readonly #options: SessionQueueOptions;
  /** By session, the run that its queue waits for; '' until that is known. The queue that was read last is the last. */
  readonly #blockingRuns = new Map<string, string>();
  /** By run, the session whose queue waits for it. */
  readonly #blockedSessions = new Map<string, string>();
  /** The sessions whose next run may have to start: the store has failed, or a notification may have been missed. */
  readonly #doubtful = new Set<string>();
  /** Set while there are queues, which wait for the ends of runs. */
  #unfollow: (() => void) | undefined;

  constructor(store: Store, options: SessionQueueOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Decides how a session admits a new run. @throws RivuletError `session_busy`, `queue_full`, `store_unavailable` */
  async admit(session_id: string, if_busy: IfBusy): Promise<Admission> {
    if (if_busy === 'parallel') return { queued: false };
    const [first] = await this.#store.unfinished(session_id, '', 1);
    if (first === undefined) return { queued: false, when: 'alone' };
    if (if_busy === 'reject') throw fail('session_busy', sessionIdOf(session_id), first.run_id);
    const { limit } = this.#options;
    if (limit > 0 && (await this.#store.count(session_id)) >= limit)
      throw fail('queue_full', sessionIdOf(session_id), limit);
    return { queued: true, when: 'last' };
  }

  /** A run of the session is queued: starts it if it is the first. */
  async add(session_id: string): Promise<void> {
    // The queue waits for another run already.
    if ((this.#blockingRuns.get(session_id) ?? '') !== '') return;
    this.#blockingRuns.set(session_id, '');
    this.#follow();
    await this.#startNext(session_id);
  }

  /** A run is final, on this or another node: starts the next run of its session. */
  onRunFinal(run_id: string): void {
    const session_id = this.#blockedSessions.get(run_id);
    // The next `check` repeats what failed.
    if (session_id !== undefined) void this.#startNext(session_id).catch(() => undefined);
  }

  /** Runs may have ended on other nodes without a notification: the next check looks at all queues. */
  onMissedNotifications(): void {
    for (const session_id of this.#blockingRuns.keys()) this.#doubtful.add(session_id);
  }

  /**
   * Checks the doubtful queues. A notification may also be lost without a sign, so each check looks at some other queues as
   * well, in turn.
   */
  async check(): Promise<void> {
    const some: string[] = [];
    for (const session_id of this.#blockingRuns.keys()) {
      if (some.length >= queuesPerCheck) break;
      if (!this.#doubtful.has(session_id)) some.push(session_id);
    }
    // The queue that failed last is the last: where a check ends at its failure, the others have had their turn.
    some.push(...this.#doubtful);
    await eachPart(this.#store, async (part) => {
      for (const session_id of idsOfPart(this.#store, some, part)) await this.#startNext(session_id);
    });
  }

  async #startNext(session_id: string): Promise<void> {
    let isSettled = false;
    try {
      isSettled = await this.#tryToStartNext(session_id);
    } finally {
      this.#doubtful.delete(session_id);
      if (!isSettled) this.#doubtful.add(session_id);
    }
  }

  /** Returns false where the store can never take the start. */
  async #tryToStartNext(session_id: string): Promise<boolean> {
    while (!this.#options.stopping()) {
      const [first] = await this.#store.unfinished(session_id, '', 1);
      this.#setBlockingRun(session_id, first?.run_id);
      if (first === undefined) return true;
      if (first.queued_at !== null) {
        const outcome = await this.#start(first);
        if (outcome !== 'outdated') return outcome === 'started';
      } else {
        // It may have ended before this process waited for it.
        const now = await this.#store.run(first.run_id);
        if (now !== undefined && !isFinal(now.status)) return true;
      }
    }
    return true;
  }

  /** Starts a queued run: that is durable before its agent runs. `outdated` where the session was written to meanwhile. */
  async #start(row: RunRow): Promise<'started' | 'rejected' | 'outdated'> {
    const { epoch, last } = row;
    const started: RunRow = { ...row, queued_at: null, epoch: epoch + 1 };
    const { commits, offers, onRejected } = this.#options;
    const write: Write = { row: started, from: epoch, expect: last, lines: [], when: 'first', node: null };
    const outcome = await commits.of(row.run_id).commitOne(write, () => offers.offer(row.run_id));
    if (typeof outcome !== 'object') return outcome === 'taken' ? 'started' : 'outdated';
    onRejected(row.run_id, outcome.rejected);
    return 'rejected';
  }

  /** Hears of the ends of runs while there are queues. */
  #follow(): void {
    if (this.#blockingRuns.size === 0) {
      this.#unfollow?.();
      this.#unfollow = undefined;
    } else {
      this.#unfollow ??= this.#options.followed.add(allChanges, () => {
        this.onMissedNotifications();
        // The next check repeats what fails.
        void this.check().catch(() => undefined);
      });
    }
  }

  #setBlockingRun(session_id: string, run_id: string | undefined): void {
    this.#blockedSessions.delete(this.#blockingRuns.get(session_id) ?? '');
    this.#blockingRuns.delete(session_id);
    if (run_id !== undefined) {
      this.#blockingRuns.set(session_id, run_id);
      this.#blockedSessions.set(run_id, session_id);
    }
    this.#follow();
  }
}
