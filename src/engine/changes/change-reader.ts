import { isFinal } from '../../core/run-state.ts';
import type { RunFilter, RunRow, Store } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import { isUnavailable } from '../store-access.ts';
import { changedSince, maxClockSkew } from './changed-since.ts';

/** The row of a run whose status has changed, and when this node learned of it, in milliseconds. */
export interface Change {
  readonly row: RunRow;
  readonly at: number;
}

/**
 * What a reader is given. `run`: the state of a run; `data` is JSON, `{"run":…}`. `ready`: the reader has all runs that
 * its beginning promises. `reset`: the reader may have missed changes; the newest runs follow, as at the beginning.
 */
export interface ChangeEvent {
  readonly type: 'run' | 'ready' | 'reset';
  readonly data: string;
  /** The reader's position after this event; undefined where it does not change. */
  readonly position?: number;
}

export interface ChangesOptions {
  /** Runs that a reader without a position is given at the beginning. */
  readonly limit: number;
  /** The position at which an earlier reader has stopped. */
  readonly after?: number | undefined;
}

interface ChangeReaderOptions {
  readonly store: Store;
  readonly filter: RunFilter;
  readonly limit: number;
  readonly now: () => number;
  readonly storeTimeout: number;
  readonly textOf: (row: RunRow) => Promise<string>;
  readonly onClose: () => void;
}

/** Changed runs that wait for a slow reader. */
const maxPending = 1_000;
/** Runs of one batch of events, and its characters: it ends early with the questions that make it large. */
const runsPerBatch = 50;
const maxBatchChars = 1024 * 1024;
/** Runs that are read at once. */
const concurrentReads = 8;
/** Milliseconds until a store that was unavailable is read again. */
const retryPause = 500;

/**
 * Reads the states of the runs that match a filter: as of the beginning, then each change. States replace each other:
 * while the reader is slow, only the newest state of each run waits, and with too many runs it begins again.
 */
export class ChangeReader implements AsyncIterable<readonly ChangeEvent[]> {
  readonly #options: ChangeReaderOptions;
  #pending = new Map<string, Change>();
  /** `reset`: it has missed changes, and begins again. */
  #state: 'open' | 'reset' | 'closed' = 'open';
  #wake = (): void => {};
  #timer: NodeJS.Timeout | undefined;
  /** Set with the first batch. */
  #events: AsyncGenerator<readonly ChangeEvent[], void, undefined> | undefined;
  #first: readonly ChangeEvent[] | undefined;

  constructor(options: ChangeReaderOptions) {
    this.#options = options;
  }

  /** Reads the first batch, so that an error of the store becomes the answer of the request. */
  async begin(after: number | undefined): Promise<void> {
    try {
      const events = this.#read(after);
      this.#first = (await events.next()).value ?? undefined;
      this.#events = events;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** A run has changed. `before` is its status before, if that is known. */
  offer(change: Change, before: RunStatus | undefined): void {
    const { row } = change;
    if (!concerns(this.#options.filter, row, before)) return;
    // At the end: positions increase.
    this.#pending.delete(row.run_id);
    this.#pending.set(row.run_id, change);
    if (this.#pending.size > maxPending) this.reset();
    this.#wake();
  }

  /** The reader may miss changes: it begins again. */
  reset(): void {
    if (this.#state !== 'closed') this.#state = 'reset';
    this.#pending.clear();
    this.#wake();
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#pending.clear();
    clearTimeout(this.#timer);
    this.#wake();
    this.#options.onClose();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    try {
      if (this.#first !== undefined) yield this.#first;
      this.#first = undefined;
      if (this.#events !== undefined) yield* this.#events;
    } finally {
      this.close();
    }
  }

  async *#read(after: number | undefined): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    yield* after === undefined ? this.#newest() : this.#changedSince(after);
    while (this.#state !== 'closed') {
      if (this.#state === 'reset') {
        this.#state = 'open';
        yield* this.#newest({ type: 'reset', data: '{}' });
      } else if (this.#pending.size > 0) yield* this.#eventsOf(this.#takePending());
      else await this.#woken();
    }
  }

  /**
   * The newest runs, oldest first, without positions: a reader that gets only some of them has none. `before` comes first, as
   * soon as the store answers.
   */
  async *#newest(before?: ChangeEvent): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    const { store, filter, limit, now } = this.#options;
    const at = now();
    const rows = await this.#answer(() => store.runs(filter, undefined, limit));
    if (rows === undefined) return;
    if (before !== undefined) yield [before];
    yield* this.#eventsOf(rows.toReversed().map((row) => ({ row })));
    if (this.#state !== 'closed') yield [{ type: 'ready', data: '{}', position: at }];
  }

  /** The runs that may have changed since an earlier reader's position. */
  async *#changedSince(after: number): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    const { store, filter, now, storeTimeout } = this.#options;
    const at = now();
    // A run may end while its store fails. It is in the store up to `storeTimeout` later, with the time of its end.
    const since = new Date(Math.max(0, Math.min(after, at) - storeTimeout - maxClockSkew)).toISOString();
    for await (const rows of changedSince(store, since, filter.session_id)) {
      if (rows === 'too many') return this.reset();
      yield* this.#eventsOf(rows.filter((row) => concerns(filter, row, undefined)).map((row) => ({ row })));
      if (this.#state === 'closed') return;
    }
    yield [{ type: 'ready', data: '{}', position: at }];
  }

  #takePending(): Change[] {
    const changes: Change[] = [];
    for (const [run_id, change] of this.#pending) {
      if (changes.length === runsPerBatch) break;
      changes.push(change);
      this.#pending.delete(run_id);
    }
    return changes;
  }

  /** Batches of events, so that no reader has more than one in memory, and its next reads. */
  async *#eventsOf(
    changes: readonly { readonly row: RunRow; readonly at?: number }[],
  ): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    const eventOf = async ({ row, at }: (typeof changes)[number]): Promise<ChangeEvent> => {
      const data = await this.#options.textOf(row);
      return { type: 'run', data, ...(at !== undefined && { position: at }) };
    };
    let batch: ChangeEvent[] = [];
    let chars = 0;
    for (let from = 0; from < changes.length; from += concurrentReads) {
      const read = () => Promise.all(changes.slice(from, from + concurrentReads).map(eventOf));
      for (const event of (await this.#answer(read)) ?? []) {
        batch.push(event);
        chars += event.data.length;
        if (batch.length < runsPerBatch && chars < maxBatchChars) continue;
        yield batch;
        batch = [];
        chars = 0;
      }
    }
    if (batch.length > 0) yield batch;
  }

  /** The answer of the store. From the first batch on it is repeated until it comes; undefined where the reader is closed. */
  async #answer<T>(read: () => Promise<T>): Promise<T | undefined> {
    while (this.#state !== 'closed') {
      try {
        return await read();
      } catch (error) {
        if (this.#events === undefined || !isUnavailable(error)) throw error;
        await this.#woken(retryPause);
      }
    }
    return undefined;
  }

  /** Resolves when the reader is woken, or after some milliseconds. */
  #woken(milliseconds?: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#state === 'closed') return resolve();
      this.#wake = () => {
        clearTimeout(this.#timer);
        resolve();
      };
      if (milliseconds !== undefined) this.#timer = setTimeout(resolve, milliseconds);
    });
  }
}

/**
 * Whether a reader has to know of a run's new status: the run matches the filter, or has matched it before. Without the
 * status before, it has matched if it may have.
 */
function concerns(filter: RunFilter, row: RunRow, before: RunStatus | undefined): boolean {
  const { agent_name, session_id, status, owner } = filter;
  if (owner !== undefined && owner !== row.owner) return false;
  if (agent_name !== undefined && agent_name !== row.agent_name) return false;
  if (session_id !== undefined && session_id !== row.session_id) return false;
  if (status === undefined || status === row.status) return true;
  return before === undefined ? mayHaveBeen(status, row) : before === status;
}

/** Whether a run may have had a status before. No status follows a final one, and a log begins with two run events. */
function mayHaveBeen(status: RunStatus, row: RunRow): boolean {
  if (isFinal(status) || row.status === 'created') return false;
  return status === 'created' || row.snapshot > 2;
}
