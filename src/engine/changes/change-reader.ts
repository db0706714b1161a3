import type { RunRow } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { isFinal } from '../../core/run-state.ts';
import { Delay } from '../../core/timing.ts';
import type { RunStatus } from '../../schema/run.ts';
import { isUnavailable } from '../store/store-calls.ts';
import { type VisibleRuns, visibleRuns } from '../store/visible-runs.ts';
import { changedSince, maxClockSkew, type ReadByStatusTime } from './changed-since.ts';

/** The row of a run whose status has changed, and when this node learned of it, in milliseconds. */
export interface Change {
  readonly row: RunRow;
  readonly at: number;
}

/**
 * What a reader is given. `run`: the state of a run; `data` is JSON, `{"run":…}`. `ready`: the reader has all runs that
 * were there when it began. `reset`: the reader may have missed changes; the newest runs follow, as at the beginning. The
 * position of a reset is 0, so that a client which reconnects before `ready` begins anew as well.
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
  readonly filter: VisibleRuns;
  readonly limit: number;
  readonly now: () => number;
  readonly storeTimeout: number;
  readonly textOf: (row: RunRow) => Promise<string>;
  readonly onClose: () => void;
}

/** Changed runs that wait for a slow reader. */
const maxPending = 1_000;
/** Runs of one batch of events. */
const runsPerBatch = 50;
/** Characters after which a batch ends early: the questions of awaiting runs may be long. */
const maxBatchChars = 1024 * 1024;
/** Runs that are read at once. */
const concurrentReads = 8;
/** Milliseconds until a store that was unavailable is read again. */
const retryPause = 500;
/** Says that a reader has to begin anew. */
const reset: ChangeEvent = { type: 'reset', data: '{}', position: 0 };

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
  readonly #pause = new Delay();
  #first: readonly ChangeEvent[] | undefined;
  /** The batches after the first one. Until `begin` has read that, an error of the store is that of the request. */
  #others: AsyncGenerator<readonly ChangeEvent[], void, undefined> | undefined;

  constructor(options: ChangeReaderOptions) {
    this.#options = options;
  }

  /** Reads the first batch, so that an error of the store becomes the answer of the request. */
  async begin(after: number | undefined): Promise<void> {
    try {
      const batches = this.#read(after);
      const first = await batches.next();
      if (first.done !== true) this.#first = first.value;
      this.#others = batches;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** A run has changed. `before` is its row before, if that is known. */
  offer(change: Change, before: RunRow | undefined): void {
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
    if (!this.#closed) this.#state = 'reset';
    this.#pending.clear();
    this.#wake();
  }

  close(): void {
    if (this.#closed) return;
    this.#state = 'closed';
    this.#pending.clear();
    this.#pause.close();
    this.#wake();
    this.#options.onClose();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    try {
      if (this.#first !== undefined) yield this.#first;
      this.#first = undefined;
      if (this.#others !== undefined) yield* this.#others;
    } finally {
      this.close();
    }
  }

  get #closed(): boolean {
    return this.#state === 'closed';
  }

  async *#read(after: number | undefined): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    yield* after === undefined ? this.#newest() : this.#changedSince(after);
    while (!this.#closed) {
      if (this.#state === 'reset') {
        this.#state = 'open';
        yield* this.#newest(reset);
      } else if (this.#pending.size > 0) yield* this.#eventsOf(this.#takePending());
      else await this.#woken();
    }
  }

  /**
   * The newest runs, oldest first. They have no positions, because a client that got only some of them has to begin anew.
   * `before` comes first, as soon as the store answers.
   */
  async *#newest(before?: ChangeEvent): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    const { store, filter, limit, now } = this.#options;
    const at = now();
    const page = await this.#answer(() => visibleRuns(store, filter, undefined, limit));
    if (page === undefined || this.#closed) return;
    if (before !== undefined) yield [before];
    yield* this.#statesOf(page.items.toReversed());
    if (!this.#closed) yield [{ type: 'ready', data: '{}', position: at }];
  }

  /** The runs that may have changed since an earlier reader's position. */
  async *#changedSince(after: number): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    const { store, filter, now, storeTimeout } = this.#options;
    const at = now();
    // A run may change while its store fails. The change is in the store up to `storeTimeout` later, with its time.
    const since = new Date(Math.max(0, Math.min(after, at) - storeTimeout - maxClockSkew)).toISOString();
    const { agent_name, session_id, owner } = filter;
    const changed = {
      ...(agent_name !== undefined && { agent_names: [agent_name] }),
      ...(session_id !== undefined && { session_id }),
      ...(owner !== undefined && { owner }),
      since,
    };
    const read: ReadByStatusTime = async (...asked) =>
      (await this.#answer(() => store.runsByStatusTime(...asked))) ?? [];
    for await (const rows of changedSince(read, changed)) {
      if (rows === 'too many') return this.reset();
      yield* this.#statesOf(rows.filter((row) => concerns(filter, row, undefined)));
    }
    if (!this.#closed) yield [{ type: 'ready', data: '{}', position: at }];
  }

  /** The states that the store has, without the pending changes that are no newer. */
  #statesOf(rows: readonly RunRow[]): AsyncGenerator<readonly ChangeEvent[], void, undefined> {
    for (const row of rows) {
      const change = this.#pending.get(row.run_id);
      if (change !== undefined && !isNewer(change.row, row)) this.#pending.delete(row.run_id);
    }
    return this.#eventsOf(rows.map((row) => ({ row })));
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

  /**
   * Events in batches. The reader keeps one batch in memory, and the runs that it reads for the next one. A reader that is
   * closed still gives what it has read, such as the runs that ended when the server stopped.
   */
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
      const events = await this.#answer(read);
      if (events === undefined) break;
      for (const event of events) {
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

  /** The answer of the store. After the first batch, a read that fails is repeated. Undefined once the reader is closed. */
  async #answer<T>(read: () => Promise<T>): Promise<T | undefined> {
    while (!this.#closed) {
      try {
        return await read();
      } catch (error) {
        if (this.#others === undefined || !isUnavailable(error)) throw error;
        await this.#pause.wait(retryPause);
      }
    }
    return undefined;
  }

  /** Resolves when the reader is woken. */
  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#closed) resolve();
    });
  }
}

type Version = Pick<RunRow, 'epoch' | 'last'>;

/** Whether a run's row is newer than the one that is known. */
export const isNewer = (version: Version, known: Version | undefined): boolean =>
  known === undefined || version.epoch > known.epoch || version.last > known.last;

/**
 * Whether a reader has to know of a run's new state: the run matches the filter, or has matched it before. Without the
 * row before, it has matched if it may have.
 */
function concerns(filter: VisibleRuns, row: RunRow, before: RunRow | undefined): boolean {
  const { agent_name, session_id, status, parked, owner, isVisible } = filter;
  if (isVisible?.(row.agent_name) === false) return false;
  if (owner !== undefined && owner !== row.owner) return false;
  if (agent_name !== undefined && agent_name !== row.agent_name) return false;
  if (session_id !== undefined && session_id !== row.session_id) return false;
  // Without its row before, a durable run may have been parked.
  if (parked && row.parked === null && (before === undefined ? row.tier !== 'durable' : before.parked === null))
    return false;
  if (status === undefined || status === row.status) return true;
  return before === undefined ? mayHaveBeen(status, row) : before.status === status;
}

/** Whether a run may have had a status before. No status follows a final one, and a log begins with two run events. */
function mayHaveBeen(status: RunStatus, row: RunRow): boolean {
  if (isFinal(status) || row.status === 'created') return false;
  return status === 'created' || row.snapshot > 2;
}
