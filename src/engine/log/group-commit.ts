import { fail } from '../../core/errors.ts';
import type { Outcome, Store, Write } from '../../core/store.ts';
import { delay } from '../../core/timing.ts';
import { orUnavailable } from '../store-access.ts';

/** A log that has something to be kept, as the group commit sees it. */
export interface UncommittedLog {
  /** Characters of what is pending. */
  readonly backlog: number;
  /** What is pending; from now on it is in flight, until it is settled or broke. */
  takePending(): Write[];
  /** What became of the writes in flight: one outcome each, from `at` on. */
  onCommitted(outcomes: readonly Outcome[], at: number): void;
  /** The store did not take them within the time that it has. */
  onCommitFailed(cause: unknown): void;
  /** Resolves when all that was appended is durable. */
  flushed(): Promise<void>;
}

/** The writes of one log that go to the store together. */
interface WriteGroup {
  readonly log: UncommittedLog;
  readonly writes: readonly Write[];
  readonly chars: number;
  /** When the store first failed to take them, in milliseconds of `performance.now`. */
  failedAt?: number;
}

export interface GroupCommitOptions {
  /** Milliseconds that a request waits for a store that does not answer. */
  readonly requestTimeout: number;
  /** Milliseconds for which a commit that fails is tried again, before its runs fail. */
  readonly storeTimeout: number;
  /** Told of a commit that fails for the first time since one succeeded, and of what a log throws. */
  readonly onFailure: (error: unknown) => void;
}

/** One commit has at most so many writes, and so many characters unless one log alone has more. */
const maxCommitWrites = 500;
const maxCommitChars = 4 * 1024 * 1024;
/** Failed rounds after which logs are tried one by one, so that what one of them wrote does not stop the others. */
const maxCombinedRounds = 2;
/** Failures in one such round after which it is the store that fails. */
const maxFailuresPerRound = 20;

/**
 * Group commit: what all runs append in one turn of the event loop goes to the store as one commit,
 * and what they append while it is under way goes with the next. A reader is shown nothing before.
 * A commit that the store fails to take is tried again, after pauses of 50 ms to 2 s, until `storeTimeout`.
 */
export class GroupCommit {
  readonly #store: Store;
  readonly #options: GroupCommitOptions;
  #dirty: UncommittedLog[] = [];
  /** What the store has not taken yet, oldest first. */
  #failed: WriteGroup[] = [];
  #rounds = 0;
  /** What the store said against the last commit that it did not take; undefined while it takes them. */
  #lastError: unknown;
  #running = false;
  readonly #drainWaiters: (() => void)[] = [];
  /** Since when a commit is under way or failing, in milliseconds of `performance.now`. */
  #busySince: number | undefined;

  constructor(store: Store, options: GroupCommitOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Whether the last commit failed. */
  get failing(): boolean {
    return this.#lastError !== undefined;
  }

  /**
   * What a request asks before it begins something: runs can wait for a store that is unavailable, people cannot.
   * @throws RivuletError `store_unavailable`
   */
  checkAvailable(): void {
    if (this.#busySince !== undefined && performance.now() - this.#busySince > this.#options.requestTimeout)
      throw fail('store_unavailable');
  }

  /** Resolves when all of a log is durable. What is given up may become durable all the same. @throws as above */
  whenDurable(log: UncommittedLog): Promise<void> {
    return orUnavailable(log.flushed(), this.#options.requestTimeout);
  }

  /** Has the log's pending events committed at the end of this turn; called once before each `take`. */
  schedule(log: UncommittedLog): void {
    this.#dirty.push(log);
    if (this.#running) return;
    this.#running = true;
    // setImmediate, not a microtask: an async generator yields its tokens in separate microtasks,
    // and all of them belong into one commit.
    setImmediate(this.#run);
  }

  /** Resolves when nothing is waiting to be kept, or the store has failed to take it. */
  async drained(): Promise<void> {
    if (this.#running) await new Promise<void>((resolve) => this.#drainWaiters.push(resolve));
  }

  // Never rejects: what goes wrong is told to the logs that it concerns.
  readonly #run = (): void => {
    void this.#commitRound().then(() => {
      if (this.#dirty.length > 0 || this.#failed.length > 0) return void setImmediate(this.#run);
      this.#running = false;
      for (const resolve of this.#drainWaiters.splice(0)) resolve();
    });
  };

  async #commitRound(): Promise<void> {
    const groups = this.#failed;
    const inFlight = new Set(groups.map(({ log }) => log));
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const log of dirty) {
      // Its earlier writes come first; it stays dirty until they are settled.
      if (inFlight.has(log)) this.#dirty.push(log);
      else groups.push(groupOf(log));
    }
    this.#failed = [];
    this.#busySince ??= performance.now();
    await this.#commitAll(groups);
    if (this.#failed.length > 0) {
      this.#rounds += 1;
      await delay(Math.min(25 * 2 ** this.#rounds, 2_000));
      this.#giveUpLate();
    }
    if (this.#failed.length > 0) return;
    this.#rounds = 0;
    this.#lastError = undefined;
    this.#busySince = undefined;
  }

  async #commitAll(groups: readonly WriteGroup[]): Promise<void> {
    const single = this.#rounds >= maxCombinedRounds;
    let failures = 0;
    for (let next = 0; next < groups.length; ) {
      const from = next;
      let writes = 0;
      let chars = 0;
      do {
        const group = groups[next];
        writes += group?.writes.length ?? 0;
        chars += group?.chars ?? 0;
        next += 1;
      } while (!single && next < groups.length && writes < maxCommitWrites && chars < maxCommitChars);
      const slice = from === 0 && next === groups.length ? groups : groups.slice(from, next);
      if (failures >= maxFailuresPerRound) this.#failed.push(...slice);
      else if (!(await this.#commit(slice))) failures += 1;
    }
    // Those that were not tried come first the next time.
    if (failures >= maxFailuresPerRound) this.#failed.push(...this.#failed.splice(0, failures));
  }

  /** Answers whether the store took part; what it did not take is tried again. */
  async #commit(groups: readonly WriteGroup[]): Promise<boolean> {
    const [first] = groups;
    const writes = groups.length === 1 && first !== undefined ? first.writes : groups.flatMap((one) => one.writes);
    let outcomes: Outcome[];
    try {
      outcomes = await this.#store.commit(writes);
    } catch (error) {
      this.#onFailedCommit(groups, error);
      return false;
    }
    let at = 0;
    for (const { log, writes } of groups) {
      // A reader that throws must not keep the logs after this one from being told.
      try {
        log.onCommitted(outcomes, at);
      } catch (error) {
        this.#options.onFailure(error);
      }
      at += writes.length;
    }
    return true;
  }

  #onFailedCommit(groups: readonly WriteGroup[], error: unknown): void {
    if (this.#lastError === undefined) this.#options.onFailure(error);
    this.#lastError = error;
    for (const group of groups) {
      group.failedAt ??= performance.now();
      this.#failed.push(group);
    }
  }

  #giveUpLate(): void {
    const limit = performance.now() - this.#options.storeTimeout;
    const late = this.#failed.filter(({ failedAt = 0 }) => failedAt < limit);
    if (late.length === 0) return;
    this.#failed = this.#failed.filter((group) => !late.includes(group));
    for (const { log } of late) log.onCommitFailed(this.#lastError);
  }
}

function groupOf(log: UncommittedLog): WriteGroup {
  const chars = log.backlog;
  return { log, writes: log.takePending(), chars };
}
