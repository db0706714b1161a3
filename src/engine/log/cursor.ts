import { fail, RivuletError } from '../../core/errors.ts';
import type { Batch } from '../../core/store.ts';
import { isSettling, lastIdOf } from './batch.ts';
import type { PageCache } from './page-cache.ts';
import type { Readers, RunFinder, Source } from './source.ts';
import type { Reader } from './tail.ts';

export interface CursorOptions {
  /** Id of the last event already seen. Default 0: from the beginning. */
  readonly after?: number;
  /** Where to stop: at what is there now, at the next final event or await, or at the final one (default). */
  readonly until?: 'now' | 'settled' | 'final';
}

/**
 * What a cursor does: `reading` what is at hand, `asking` the store for a page or for where the run is now, `held` until
 * something changes because the store is unavailable, or at its end.
 */
type State =
  | { readonly kind: 'reading' | 'loading' | 'closed' }
  | { readonly kind: 'retrying'; readonly release: () => void }
  | { readonly kind: 'failed'; readonly error: unknown };

const reading: State = { kind: 'reading' };
const loading: State = { kind: 'loading' };
const closed: State = { kind: 'closed' };
const noBatches: readonly Batch[] = [];
/** Milliseconds until a store that was unavailable is asked again, if nothing was heard of it before. */
const retryPause = 500;

/**
 * A reader's position in a log. Replay and live are one: what is durable after the position is read, from the log's tail
 * or the store; where there is nothing, the reader is called when the log moves. Nothing is queued for a reader, so
 * a slow one costs no memory. It calls back instead of promising, because a token that is read as soon as it is
 * durable is most of what a server does, and each promise on its way costs as much as its frame.
 */
export class Cursor implements Reader {
  /** The run is final and there is nothing after the cursor, nor will there be. */
  readonly exhausted: boolean;
  readonly #pages: PageCache;
  readonly #runs: RunFinder;
  readonly #end: number;
  readonly #untilSettled: boolean;
  #state = reading;
  #source: Source;
  #after: number;
  #page: readonly Batch[] = noBatches;
  #next = 0;
  /** Told when the log of this process grows, or when a run that is not here changes. */
  #joinedReaders: Readers | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Whether a run that is not here may have changed since it was looked up. */
  #stale = false;
  #onReady: (() => void) | undefined;
  #readerWaits = false;

  /** @throws RivuletError `cursor_invalid` */
  constructor(pages: PageCache, runs: RunFinder, source: Source, { after = 0, until = 'final' }: CursorOptions = {}) {
    const last = source.durable;
    if (!Number.isSafeInteger(after) || after < 0 || after > last) throw fail('cursor_invalid', 'after', String(after));
    this.#pages = pages;
    this.#runs = runs;
    this.#source = source;
    this.#after = after;
    this.#end = until === 'now' ? last : Number.POSITIVE_INFINITY;
    this.#untilSettled = until === 'settled';
    this.exhausted = source.final && after === last;
    // Joined here, not at the first read: a run that is done in one turn would be gone from the tail.
    if (until !== 'now') this.#setSource(source);
  }

  get seen(): number {
    return this.#after;
  }

  /** Has a callback made each time there may be more, after a read that answered `later`. */
  onReady(callback: () => void): void {
    this.#onReady = callback;
  }

  /**
   * The next events, with no missing or duplicate ones; `later` where they are still to come, `over` after the last one
   * or when the cursor is closed.
   * @throws RivuletError `log_removed`, and what the store throws
   */
  read(): Batch | 'later' | 'end' {
    const read = this.#read();
    this.#readerWaits = read === 'later';
    return read;
  }

  /** Reads no more. The caller that opened a cursor closes it; iterating to its end, or leaving the loop, does so too. */
  close(): void {
    if (this.#state === closed) return;
    if (this.#state.kind === 'retrying') this.#state.release();
    this.#state = closed;
    this.#page = noBatches;
    this.#unsubscribeAll();
    this.wake();
  }

  /** Calls its reader back, if that waits. */
  wake(): void {
    if (!this.#readerWaits) return;
    this.#readerWaits = false;
    this.#onReady?.();
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
      if (this.#state === closed || this.#after >= this.#end) return 'end';
      if (this.#state.kind === 'failed') throw this.#state.error;
      const batch = this.#nextOfPage();
      if (batch !== undefined) return batch;
      if (this.#state !== reading) return 'later';
      const source = this.#source;
      if (this.#after < source.durable) {
        const kept = source.eventsInMemory(this.#after);
        if (kept === undefined) this.#fetchPage();
        else this.#usePage(kept);
      } else if (source.final) {
        return 'end';
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
      const end = Math.min(this.#end, this.#source.durable);
      if (batch !== undefined && lastIdOf(batch) > this.#after) {
        // A page may have more than the source knew of when it was looked up.
        if (batch.first > end || this.#after >= end) break;
        const fresh = sliceOf(batch, this.#after, this.#untilSettled ? settlingIdIn(batch, this.#after, end) : end);
        this.#after = lastIdOf(fresh);
        if (this.#untilSettled && isSettling(fresh.lines.at(-1))) this.close();
        return fresh;
      }
      this.#next += 1;
    }
    // A reader that waits for the next token holds nothing of the last one.
    if (this.#next >= this.#page.length) this.#page = noBatches;
    return undefined;
  }

  #usePage(page: readonly Batch[]): void {
    this.#page = page;
    this.#next = 0;
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
      // What happened between the look at the run and this is not told.
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
    this.#load(this.#pages.after(this.#source.run_id, this.#after).then((page) => this.#usePage(page)));
  }

  #refreshSource(): void {
    // Listens before it looks: what happens in between is not missed.
    this.#setSource(this.#source);
    this.#stale = false;
    this.#load(this.#runs.find(this.#source.run_id, this.#after).then((source) => this.#setSource(source)));
  }

  #load(answer: Promise<void>): void {
    this.#state = loading;
    answer
      .then(
        () => this.#setState(reading),
        (error: unknown) => {
          if (error instanceof RivuletError && error.kind === 'store_unavailable') this.#retryLater();
          else this.#setState({ kind: 'failed', error });
        },
      )
      .finally(() => this.wake());
  }

  #setState(state: State): void {
    if (this.#state !== closed) this.#state = state;
  }

  /** The store is unavailable: the stream stays open, and it is asked again when it may be back. */
  #retryLater(): void {
    if (this.#state === closed) return;
    this.#stale = true;
    const again = (): void => {
      release();
      this.#setState(reading);
      this.wake();
    };
    const timer = setTimeout(again, retryPause);
    const unsubscribe = this.#runs.onChange(this.#source.run_id, again);
    const release = (): void => {
      clearTimeout(timer);
      unsubscribe();
    };
    this.#state = { kind: 'retrying', release };
  }
}

/** The id of the first event of a batch, after one and up to another, that settles the run; or else the last id. */
function settlingIdIn(batch: Batch, after: number, end: number): number {
  const last = Math.min(lastIdOf(batch), end);
  for (let id = Math.max(batch.first, after + 1); id < last; id += 1) {
    if (isSettling(batch.lines[id - batch.first])) return id;
  }
  return last;
}

// Whole batches are the rule, and go on as they are: what was made of them once serves every reader.
function sliceOf(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastIdOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
