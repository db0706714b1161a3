import { fail } from '../../core/errors.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { isSettling } from '../../core/recognize.ts';
import { Delay, retry } from '../../core/timing.ts';
import { isUnavailable } from '../store/store-calls.ts';
import type { PageCache } from './page-cache.ts';
import type { Readers, RunFinder, Source } from './source.ts';
import type { Reader } from './tail.ts';
import { lastIdOf } from './tail.ts';

export interface CursorOptions {
  /** The id of the last event that the reader has. Default 0: from the beginning. */
  readonly after?: number;
  /** What errors call `after`, such as the name of a header. Default: `after`. */
  readonly name?: string | undefined;
  /**
   * The id of an event that the log is known to have. A node whose copy ends before it reads the store. Default: `after`.
   */
  readonly seen?: number;
  /**
   * Where to stop: at the last event that is durable now, at the next event that settles the run, or at the final event
   * (default).
   */
  readonly until?: 'now' | 'settled' | 'final';
  /** Called with each batch before the reader gets it. An error of it ends the reading. */
  readonly onRead?: (batch: Batch) => void;
}

/**
 * `reading`: events are in memory, or the reader waits for them. `loading`: the store is read for a page or for the
 * run's row. While the store is unavailable, the cursor tries again after a pause or a notification.
 */
type State =
  | { readonly kind: 'reading' | 'closed' }
  | { readonly kind: 'loading'; readonly delay: Delay }
  | { readonly kind: 'failed'; readonly error: unknown };

const reading: State = { kind: 'reading' };
const closed: State = { kind: 'closed' };
const noBatches: readonly Batch[] = [];

/**
 * A reader's position in a log. History and live events take the same path: the cursor reads what is durable after its
 * position, from the log's tail or from the store. When there is nothing, it calls the reader back once the log has
 * grown. Nothing is queued for a reader, so a slow reader takes no memory. It uses callbacks, because a promise for each
 * token would take as long as the rest of the way of a token.
 */
export class Cursor implements Reader {
  /** Whether the run was final when the cursor was made. */
  readonly final: boolean;
  /** The events between its position and the end of the log, when it was made. */
  readonly behind: number;
  readonly #pages: PageCache;
  readonly #runs: RunFinder;
  readonly #end: number;
  readonly #untilSettled: boolean;
  readonly #onRead: ((batch: Batch) => void) | undefined;
  #state = reading;
  #source: Source;
  #after: number;
  #page: readonly Batch[] = noBatches;
  #next = 0;
  /** Where the cursor is registered: with a log of this process, or for changes of a run that is not in memory. */
  #joinedReaders: Readers | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Whether a run that is not in memory may have changed since its row was read. */
  #stale = false;
  #onReady: (() => void) | undefined;
  #readerWaits = false;

  /** @throws RivuletError `cursor_invalid` */
  constructor(pages: PageCache, runs: RunFinder, source: Source, options: CursorOptions = {}) {
    const { after = 0, name = 'after', until = 'final' } = options;
    const last = source.durable;
    if (!Number.isSafeInteger(after) || after < 0 || after > last) throw fail('cursor_invalid', name, String(after));
    this.#pages = pages;
    this.#runs = runs;
    this.#source = source;
    this.#after = after;
    this.#end = until === 'now' ? last : Number.POSITIVE_INFINITY;
    this.#untilSettled = until === 'settled';
    this.#onRead = options.onRead;
    this.behind = last - after;
    this.final = source.final;
    // Registered here, not at the first read: by then the tail may have dropped the events of a short run.
    if (until !== 'now') this.#setSource(source);
  }

  get run_id(): string {
    return this.#source.run_id;
  }

  get on_disconnect(): Source['on_disconnect'] {
    return this.#source.on_disconnect;
  }

  get seen(): number {
    return this.#after;
  }

  /** The run was final when the cursor was made, and the log had no event after it. */
  get exhausted(): boolean {
    return this.final && this.behind === 0;
  }

  /** Whether the reader has all events that are durable, as far as this process knows. */
  get caughtUp(): boolean {
    return this.#after >= this.#source.durable;
  }

  /** Whether `read` returns `end` from now on. */
  get ended(): boolean {
    return this.#state === closed || this.#after >= this.#end || (this.caughtUp && this.#source.final);
  }

  /** Sets the callback for when there may be more, after a read that returned `later`. */
  onReady(callback: () => void): void {
    this.#onReady = callback;
  }

  /**
   * The next events, with no missing or duplicate ones. `later` when no event is ready, `end` after the last event
   * or when the cursor is closed.
   * @throws RivuletError `log_removed`, and any error of the store
   */
  read(): Batch | 'later' | 'end' {
    const read = this.#read();
    this.#readerWaits = read === 'later';
    if (this.#onRead !== undefined && typeof read !== 'string') this.#onRead(read);
    return read;
  }

  /** Stops reading. The caller that opened a cursor closes it; the end of an iteration closes it as well. */
  close(): void {
    if (this.#state === closed) return;
    if (this.#state.kind === 'loading') this.#state.delay.close();
    this.#state = closed;
    this.#page = noBatches;
    this.#unsubscribeAll();
    this.wake();
  }

  /** Calls the reader back if it waits. */
  wake(): void {
    if (!this.#readerWaits) return;
    this.#readerWaits = false;
    this.#onReady?.();
  }

  /**
   * Reads to the end, and closes: calls `onBatch` for each batch and then `onEnd` once, with the error where one ended it.
   * `onEnd` must not throw: the log that wakes this reader would not wake the others.
   */
  follow(onBatch: (batch: Batch) => void, onEnd: (error?: unknown) => void): void {
    const read = (): void => {
      let failure: unknown;
      try {
        for (;;) {
          const batch = this.read();
          if (batch === 'later') return;
          if (batch === 'end') break;
          onBatch(batch);
        }
      } catch (error) {
        failure = error;
      }
      this.close();
      onEnd(failure);
    };
    this.#onReady = read;
    read();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    try {
      for (;;) {
        const batch = this.read();
        if (batch === 'end') return;
        if (batch !== 'later') yield batch;
        else
          await new Promise<void>((resolve) => {
            this.#onReady = resolve;
          });
      }
    } finally {
      this.close();
    }
  }

  #read(): Batch | 'later' | 'end' {
    for (;;) {
      if (this.ended) return 'end';
      if (this.#state.kind === 'failed') throw this.#state.error;
      const batch = this.#nextOfPage();
      if (batch !== undefined) return batch;
      if (this.#state !== reading) return 'later';
      const source = this.#source;
      if (this.#after < source.durable) {
        const next = source.batchInMemory(this.#after);
        if (next !== undefined) return this.#take(next, source);
        this.#fetchPage();
      } else if (source.readers !== undefined) {
        return 'later';
      } else {
        if (this.#runs.stopping) return 'end';
        if (this.#unsubscribe !== undefined && !this.#stale) return 'later';
        this.#refreshSource();
      }
    }
  }

  #nextOfPage(): Batch | undefined {
    while (this.#next < this.#page.length) {
      const batch = this.#page[this.#next];
      if (batch !== undefined && lastIdOf(batch) > this.#after) {
        // A page may have events that are newer than the run's row.
        const end = Math.min(this.#end, this.#source.durable);
        if (batch.first > end || this.#after >= end) break;
        return this.#take(batch, this.#source);
      }
      this.#next += 1;
    }
    // Frees the page: a reader that waits keeps no events in memory.
    if (this.#next >= this.#page.length) this.#page = noBatches;
    return undefined;
  }

  /** Takes the events of a batch that the reader may have, and does not have yet; at least one. */
  #take(batch: Batch, { durable, snapshot }: Source): Batch {
    const fresh = sliceOf(batch, this.#after, Math.min(this.#end, durable));
    this.#after = lastIdOf(fresh);
    // First, because the search of a line is slow.
    const mayEnd = this.#untilSettled && this.#after <= snapshot;
    if (mayEnd && isSettling(fresh.lines.at(-1))) this.close();
    return fresh;
  }

  #setSource(source: Source): void {
    this.#source = source;
    const { readers, run_id, final } = source;
    if (readers !== undefined) {
      this.#unsubscribeAll();
      if (this.#state === closed) return;
      this.#joinedReaders = readers;
      readers.add(this);
    } else if (this.#unsubscribe === undefined && this.#state !== closed && !final) {
      this.#unsubscribeAll();
      // The run may have changed between the read of its row and this registration.
      this.#stale = true;
      this.#unsubscribe = this.#runs.onChange(run_id, this.#onRunChange);
    }
  }

  #unsubscribeAll(): void {
    this.#joinedReaders?.remove(this);
    this.#joinedReaders = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  readonly #onRunChange = (): void => {
    this.#stale = true;
    this.wake();
  };

  #fetchPage(): void {
    this.#load(async () => {
      const page = await this.#pages.after(this.#source.run_id, this.#after);
      this.#page = this.#untilSettled ? page.flatMap(settlingLast) : page;
      this.#next = 0;
    });
  }

  #refreshSource(): void {
    // Registers before it reads the row, so that no change in between is missed.
    this.#setSource(this.#source);
    this.#load(async () => {
      this.#stale = false;
      this.#setSource(await this.#runs.find(this.#source.run_id, this.#after));
    });
  }

  /** While the store is unavailable, the stream stays open and the cursor reads again, until the engine stops. */
  #load(read: () => Promise<void>): void {
    const delay = new Delay();
    let unsubscribe: (() => void) | undefined;
    const again = (error: unknown): boolean => {
      if (!isUnavailable(error) || this.#runs.stopping) return false;
      // Only after a failure: most reads succeed.
      unsubscribe ??= this.#runs.onChange(this.#source.run_id, () => delay.end());
      return true;
    };
    this.#state = { kind: 'loading', delay };
    retry(read, { again, delay })
      .then(
        () => this.#setState(reading),
        (error: unknown) => (isUnavailable(error) ? this.close() : this.#setState({ kind: 'failed', error })),
      )
      .finally(() => {
        unsubscribe?.();
        this.wake();
      });
  }

  #setState(state: State): void {
    if (this.#state !== closed) this.#state = state;
  }
}

/**
 * A batch of the store, cut so that an event that settles the run is the last of its batch. In memory, the log cuts its
 * batches like that, so that no line has to be searched.
 */
function settlingLast(batch: Batch): Batch[] {
  const { first, lines } = batch;
  const ends = lines.flatMap((line, index) => (index + 1 < lines.length && isSettling(line) ? [index + 1] : []));
  if (ends.length === 0) return [batch];
  return [0, ...ends].map((from, index) => ({ first: first + from, lines: lines.slice(from, ends[index]) }));
}

// Most batches are passed on whole and unchanged, so that all readers share what was derived from them.
function sliceOf(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastIdOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
