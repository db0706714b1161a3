import { EventEmitter } from 'eventemitter3';
import { fail } from '../../core/errors.ts';
import type { Outcome, TargetsChanged, Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { backoff, Delay } from '../../core/timing.ts';
import { orUnavailable, withTargets } from '../store/store-calls.ts';

/** A log with writes to commit, as the group commit sees it. */
export interface UncommittedLog {
  /** Characters of the pending writes. */
  readonly backlog: number;
  /** Takes the pending writes. They are in flight until `onCommitted` or `onCommitFailed`. */
  takePending(): readonly Write[];
  /** Receives the outcomes of the writes in flight: one each, from index `at` on. */
  onCommitted(outcomes: readonly Outcome[], at: number): void;
  /** The store did not commit the writes in flight within `storeTimeout`. */
  onCommitFailed(cause: unknown): void;
}

/** The writes of one log that go to the store together. */
interface WriteGroup {
  readonly log: UncommittedLog;
  readonly writes: readonly Write[];
  readonly chars: number;
  /** When the store first failed to take them, or was not asked because it failed for others: `performance.now`. */
  failedAt?: number;
}

export interface GroupCommitOptions {
  /** Milliseconds between the begins of two commits that have nothing urgent: see `hurry`. Default 0. */
  readonly interval?: number;
  /** Milliseconds that a request waits for a store that does not answer. */
  readonly requestTimeout: number;
  /** Milliseconds for which a failed commit is retried, before its runs fail. */
  readonly storeTimeout: number;
  /** Receives the error of the first failed commit after a successful one, and what a log or a listener throws. */
  readonly onFailure: (error: unknown) => void;
}

export interface CommitEvents {
  /** The store has answered with these outcomes, after so many milliseconds. */
  committed: [writes: readonly Write[], outcomes: readonly Outcome[], milliseconds: number];
  /** The store has failed. The commit is repeated, or its request gets an error. */
  failed: [];
}

/** What the store says of one write in the end. */
type FinalOutcome = Exclude<Outcome, TargetsChanged>;

/** Limits of one commit. A single log may exceed the characters. */
const maxCommitWrites = 500;
const maxCommitChars = 4 * 1024 * 1024;
/** Failed rounds after which each log gets a commit of its own, so that one log's writes cannot block the others. */
const maxCombinedRounds = 2;
/**
 * Failures in one round that show that the store itself fails. The rest of the round is skipped, and comes first in the next
 * round.
 */
const maxFailuresPerRound = 20;

/**
 * Group commit: the store gets everything that all runs append in one turn of the event loop as one commit.
 * What they append while a commit is under way goes into the next one. Tokens wait until the interval has passed since the
 * last commit began, so that the tokens of all runs share a commit. Readers see events only when they are durable.
 * A failed commit is retried after pauses of 50 ms to 1 s, for at most `storeTimeout`.
 */
export class GroupCommit {
  readonly #store: Pick<Store, 'commit'>;
  readonly #options: GroupCommitOptions;
  readonly events: EventEmitter<CommitEvents>;
  #dirty: UncommittedLog[] = [];
  /** Groups whose commit failed or was skipped, in the order of the next round. */
  #failed: WriteGroup[] = [];
  /** Rounds in a row after which groups were left. */
  #failedRounds = 0;
  /** The error of the last failed commit; undefined after a commit that succeeded. */
  #lastError: unknown;
  /** The rounds, while one is scheduled or under way. Never rejects. */
  #working: Promise<void> | undefined;
  /** The next round waits for the interval. */
  readonly #interval = new Delay();
  /** Whether something pending must not wait for the interval. */
  #urgent = false;
  /** When the last commit began: `performance.now`. */
  #lastBegan = 0;
  /** When the commit that is under way, or the first of several failed ones, began: `performance.now`. */
  #busySince: number | undefined;

  constructor(store: Pick<Store, 'commit'>, options: GroupCommitOptions, events = new EventEmitter<CommitEvents>()) {
    this.#store = store;
    this.#options = options;
    this.events = events;
  }

  /** Whether the last commit failed. */
  get failing(): boolean {
    return this.#lastError !== undefined;
  }

  /** Whether a commit is under way, or will be repeated. */
  get busy(): boolean {
    return this.#busySince !== undefined;
  }

  /** Whether the store answers, as far as is known. */
  get available(): boolean {
    return this.#busySince === undefined || performance.now() - this.#busySince <= this.#options.requestTimeout;
  }

  /**
   * Called before a request changes anything: a run may wait for a store that is unavailable, a request may not.
   * @throws RivuletError `store_unavailable`
   */
  checkAvailable(): void {
    if (!this.available) throw fail('store_unavailable');
  }

  /**
   * Commits one write of a run without an execution in this process. Calls `onTaken` (the run is offered, its readers are
   * woken) whenever the write is taken, but the caller waits for at most `requestTimeout`.
   * @throws RivuletError `store_unavailable`
   */
  commitOne(write: Write, onTaken: () => void): Promise<FinalOutcome> {
    return orUnavailable(this.#commitOne(write, onTaken), this.#options.requestTimeout);
  }

  async #commitOne(write: Write, onTaken: () => void): Promise<FinalOutcome> {
    for (let next = write; ; ) {
      const began = performance.now();
      let outcomes: Outcome[];
      try {
        outcomes = await this.#store.commit([next]);
      } catch (error) {
        this.#tell('failed');
        throw error;
      }
      const [outcome = 'fenced'] = outcomes;
      this.#tell('committed', [next], outcomes, performance.now() - began);
      if (outcome === 'taken') onTaken();
      if (typeof outcome !== 'object' || 'rejected' in outcome) return outcome;
      // Each further attempt means that another request has changed them meanwhile.
      next = withTargets(next, outcome);
    }
  }

  /** Schedules the log's pending writes. Called once before each `takePending`. */
  schedule(log: UncommittedLog): void {
    this.#dirty.push(log);
    this.#working ??= this.#commitAll();
  }

  /** Everything that is pending is committed at the end of this turn: not only tokens, or something waits for it. */
  hurry(): void {
    this.#urgent = true;
    this.#interval.end();
  }

  /** Resolves when no writes are pending; those that the store did not commit in time are dropped. */
  async drained(): Promise<void> {
    this.hurry();
    await this.#working;
  }

  /** Commits in rounds, until nothing is pending. */
  async #commitAll(): Promise<void> {
    const { interval = 0 } = this.#options;
    do {
      const rest = interval === 0 || this.#urgent ? 0 : this.#lastBegan + interval - performance.now();
      if (rest > 0) await this.#interval.wait(rest);
      await endOfTurn();
      await this.#commitRound();
    } while (this.#failed.length + this.#dirty.length > 0);
    this.#working = undefined;
  }

  /** Commits everything that is pending. Each log receives its own errors. */
  async #commitRound(): Promise<void> {
    this.#urgent = false;
    let failures = 0;
    const skipped: WriteGroup[] = [];
    for (const groups of this.#cut(this.#takeGroups())) {
      if (failures >= maxFailuresPerRound) {
        // A log that the store is not asked to take fails after `storeTimeout` as well.
        for (const group of groups) group.failedAt ??= performance.now();
        skipped.push(...groups);
        continue;
      }
      const writes = groups.flatMap((group) => group.writes);
      const began = performance.now();
      this.#lastBegan = began;
      this.#busySince ??= began;
      let outcomes: Outcome[];
      try {
        outcomes = await this.#store.commit(writes);
      } catch (error) {
        failures += 1;
        this.#onFailedCommit(groups, error);
        continue;
      }
      const milliseconds = performance.now() - began;
      this.#tellLogs(groups, outcomes);
      this.#tell('committed', writes, outcomes, milliseconds);
    }
    if (skipped.length > 0) this.#failed = [...skipped, ...this.#failed];
    if (this.#failed.length > 0) await this.#pause();
    if (this.#failed.length > 0) {
      this.#urgent = true;
    } else {
      this.#failedRounds = 0;
      this.#lastError = undefined;
      this.#busySince = undefined;
    }
  }

  /** The groups that failed, and what was appended since. */
  #takeGroups(): readonly WriteGroup[] {
    const dirty = this.#dirty;
    const groups = this.#failed;
    this.#dirty = [];
    this.#failed = [];
    if (groups.length === 0) return dirty.map(groupOf);
    const inFlight = new Set(groups.map(({ log }) => log));
    for (const log of dirty) {
      // Its earlier writes come first; its new ones wait for the next round.
      if (inFlight.has(log)) this.#dirty.push(log);
      else groups.push(groupOf(log));
    }
    return groups;
  }

  /** Cuts the groups of a round into commits; most rounds are one commit. */
  #cut(groups: readonly WriteGroup[]): WriteGroup[][] {
    const single = this.#failedRounds >= maxCombinedRounds;
    const commits: WriteGroup[][] = [];
    let [current, writes, chars]: [WriteGroup[], number, number] = [[], 0, 0];
    for (const group of groups) {
      current.push(group);
      writes += group.writes.length;
      chars += group.chars;
      if (!single && writes < maxCommitWrites && chars < maxCommitChars) continue;
      commits.push(current);
      [current, writes, chars] = [[], 0, 0];
    }
    if (current.length > 0) commits.push(current);
    return commits;
  }

  /** Gives each log the outcomes of its writes. */
  #tellLogs(groups: readonly WriteGroup[], outcomes: readonly Outcome[]): void {
    let at = 0;
    for (const { log, writes } of groups) {
      // An error of one log must not keep the outcomes from the others.
      try {
        log.onCommitted(outcomes, at);
      } catch (error) {
        this.#options.onFailure(error);
      }
      at += writes.length;
    }
  }

  /** Emits an event. A listener that throws must not keep the outcome from the logs and the requests. */
  #tell<Name extends keyof CommitEvents>(name: Name, ...about: EventEmitter.EventArgs<CommitEvents, Name>): void {
    try {
      this.events.emit(name, ...about);
    } catch (error) {
      this.#options.onFailure(error);
    }
  }

  /** Waits before the next round, and gives up the groups that have failed for too long. */
  async #pause(): Promise<void> {
    this.#failedRounds += 1;
    await new Delay().wait(backoff(this.#failedRounds));
    this.#giveUpLate();
  }

  #onFailedCommit(groups: readonly WriteGroup[], error: unknown): void {
    this.#tell('failed');
    if (this.#lastError === undefined) this.#options.onFailure(error);
    this.#lastError = error;
    for (const group of groups) {
      group.failedAt ??= performance.now();
      this.#failed.push(group);
    }
  }

  #giveUpLate(): void {
    const limit = performance.now() - this.#options.storeTimeout;
    const late = this.#failed.filter(({ failedAt }) => failedAt !== undefined && failedAt < limit);
    if (late.length === 0) return;
    this.#failed = this.#failed.filter((group) => !late.includes(group));
    for (const { log } of late) log.onCommitFailed(this.#lastError);
  }
}

/**
 * setImmediate, not a microtask: an async generator yields its tokens in separate microtasks, and all of them belong into
 * one commit.
 */
const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function groupOf(log: UncommittedLog): WriteGroup {
  const chars = log.backlog;
  return { log, writes: log.takePending(), chars };
}
