import { LRUCache } from 'lru-cache';
import {
  allChanges,
  type Outcome,
  type RunNotification,
  type RunRow,
  rowAfter,
  type Write,
} from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Limits } from '../limits.ts';
import { SharedReads } from '../log/shared-reads.ts';
import { summaryOf } from '../log/stored-run.ts';
import { eachPart, idsOfPart, partsOf } from '../store/each-part.ts';
import type { Followed } from '../store/followed.ts';
import type { VisibleRuns } from '../store/visible-runs.ts';
import { PeriodicTask } from '../time/periodic.ts';
import { ChangeReader, type ChangesOptions, isNewer } from './change-reader.ts';
import { changedSince, maxClockSkew } from './changed-since.ts';

export interface RunChangesOptions {
  readonly limits: Limits;
  /** Whether other processes write to the same store. */
  readonly shared: boolean;
  readonly followed: Followed;
  /** The time as the wire has it. */
  readonly now: () => string;
  /** Receives errors of the store that belong to no reader. */
  readonly onFailure: (error: unknown) => void;
}

/** Milliseconds between two reads of the runs that other nodes have written to; the runs of one read, of a part. */
const readInterval = 200;
const runsPerRead = 200;
const concurrentReads = 16;
/** Runs whose last row is known, and runs that wait to be read. */
const maxKnown = 20_000;
const maxUnread = 10_000;
/** Characters of the texts that are kept for other readers. */
const maxTextChars = 8 * 1024 * 1024;

/**
 * The changes of status of all runs, for any number of readers. Writes of this node are passed on as soon as they are
 * durable. Runs that other nodes have written to are read from the store, in batches. As notifications may be lost, the
 * runs that may have changed are compared at an interval. All of this happens only while there are readers.
 */
export class RunChanges {
  readonly #store: Store;
  readonly #options: RunChangesOptions;
  readonly #readers = new Set<ChangeReader>();
  readonly #tasks: readonly PeriodicTask[];
  /** The readers, and those that are being opened. */
  #users = 0;
  #started: Promise<void> | undefined;
  /** By run, the newest row that readers were told of; undefined while there are no readers. */
  #known: LRUCache<string, RunRow> | undefined;
  readonly #unread = new Map<string, RunNotification>();
  /** The parts of the store of which notifications may have been missed. */
  readonly #missedIn = new Set<number>();
  #unfollow: (() => void) | undefined;
  /** By part of the store, when the last comparison began, in milliseconds. */
  readonly #comparedAt = new Map<number, number>();
  /** The JSON of runs, by version, for all readers. */
  readonly #texts = new SharedReads<string>(maxTextChars, ({ length }) => length);
  #stopped = false;

  constructor(store: Store, options: RunChangesOptions) {
    this.#store = store;
    this.#options = options;
    const { limits, onFailure } = options;
    // Tasks of its own for each part: one that hangs would hold up the others.
    this.#tasks = partsOf(store).flatMap((part) => [
      new PeriodicTask(readInterval, () => this.#readUnread(part), onFailure),
      new PeriodicTask(limits.pollInterval, () => this.#compare(part), onFailure),
    ]);
  }

  /** A reader of the runs that match a filter; the caller closes it. @throws RivuletError `store_unavailable` */
  async open(filter: VisibleRuns, options: ChangesOptions): Promise<ChangeReader> {
    this.#users += 1;
    try {
      this.#started ??= this.#start();
      await this.#started;
    } catch (error) {
      this.#release();
      throw error;
    }
    const reader = new ChangeReader({
      store: this.#store,
      filter,
      limit: options.limit,
      now: () => this.#now(),
      storeTimeout: this.#options.limits.storeTimeout,
      textOf: (row) => this.#textOf(row),
      onClose: () => {
        this.#readers.delete(reader);
        this.#release();
      },
    });
    this.#readers.add(reader);
    if (this.#stopped) reader.close();
    await reader.begin(options.after);
    return reader;
  }

  /** Writes of this node were committed. */
  onCommitted(writes: readonly Write[], outcomes: readonly Outcome[]): void {
    if (this.#known === undefined) return;
    for (const [index, write] of writes.entries()) {
      if (write.grown !== true && outcomes[index] === 'taken') this.#learn(rowAfter(write));
    }
  }

  /** Nodes, perhaps this one, have written to runs; undefined where notifications may have been missed. */
  onNotifications(notifications: readonly RunNotification[] | undefined): void {
    if (this.#known === undefined) return;
    if (notifications === undefined) this.#missNotifications();
    for (const one of notifications ?? []) {
      if (!one.changed || !isNewer(one, this.#known.get(one.run_id))) continue;
      if (this.#unread.size < maxUnread) this.#unread.set(one.run_id, one);
      else this.#missNotifications();
    }
  }

  /** Ends all readers. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const reader of [...this.#readers]) reader.close();
    await Promise.all(this.#tasks.map((task) => task.stop()));
  }

  async #start(): Promise<void> {
    this.#known = new LRUCache({ max: maxKnown });
    for (const part of partsOf(this.#store)) this.#comparedAt.set(part, this.#now());
    if (!this.#options.shared) return;
    this.#unfollow ??= this.#options.followed.add(allChanges, () => this.#missNotifications());
    try {
      // Later comparisons report what differs from this one.
      await eachPart(this.#store, (part) => this.#compare(part));
      if (this.#users > 0 && !this.#stopped) for (const task of this.#tasks) task.start();
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }

  #release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#started = undefined;
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.#known = undefined;
    this.#unread.clear();
    this.#texts.clear();
    this.#missedIn.clear();
    for (const task of this.#tasks) void task.stop();
  }

  #learn(row: RunRow): void {
    const before = this.#known?.get(row.run_id);
    if (!isNewer(row, before)) return;
    this.#known?.set(row.run_id, row);
    if (before?.status === row.status && before.snapshot === row.snapshot && before.parked === row.parked) return;
    const change = { row, at: this.#now() };
    for (const reader of [...this.#readers]) reader.offer(change, before);
  }

  #missNotifications(): void {
    for (const part of partsOf(this.#store)) this.#missedIn.add(part);
  }

  async #readUnread(part: number): Promise<void> {
    if (this.#missedIn.has(part)) await this.#compare(part);
    if (this.#unread.size === 0) return;
    const run_ids = idsOfPart(this.#store, this.#unread.keys(), part).slice(0, runsPerRead);
    const batch = run_ids.flatMap((run_id) => this.#unread.get(run_id) ?? []);
    for (let from = 0; from < batch.length; from += concurrentReads) {
      const some = batch.slice(from, from + concurrentReads);
      const answers = await Promise.allSettled(some.map(({ run_id }) => this.#store.run(run_id)));
      for (const [index, one] of some.entries()) {
        const answer = answers[index];
        const isNewest = this.#unread.get(one.run_id) === one;
        if (isNewest) this.#unread.delete(one.run_id);
        // Read again after the others: it may be the only one that cannot be read.
        if (isNewest && answer?.status === 'rejected') this.#unread.set(one.run_id, one);
        if (answer?.status === 'fulfilled' && answer.value !== undefined) this.#learn(answer.value);
      }
      const failed = answers.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    }
  }

  /** Reads the runs of a part that have changed since the last comparison. */
  async #compare(part: number): Promise<void> {
    const began = this.#now();
    const missed = this.#missedIn.delete(part);
    // An outage that interrupts notifications may delay commits as well. A change is then stored after its own time.
    const overlap = maxClockSkew + (missed ? this.#options.limits.storeTimeout : 0);
    const since = new Date((this.#comparedAt.get(part) ?? began) - overlap).toISOString();
    try {
      for await (const rows of changedSince((...asked) => this.#store.runsByStatusTime(...asked), { since, part })) {
        if (this.#known === undefined) return;
        if (rows === 'too many') for (const reader of [...this.#readers]) reader.reset();
        else for (const row of rows) this.#learn(row);
      }
    } catch (error) {
      if (missed) this.#missedIn.add(part);
      throw error;
    }
    this.#comparedAt.set(part, began);
  }

  #textOf(row: RunRow): Promise<string> {
    const { run_id, epoch, last } = row;
    return this.#texts.get(`${run_id} ${epoch} ${last}`, async () => {
      return JSON.stringify({ run: await summaryOf(this.#store, row) });
    });
  }

  #now(): number {
    return Date.parse(this.#options.now());
  }
}
