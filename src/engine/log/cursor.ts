import { fail, RivuletError } from '../../core/errors.ts';
import type { Batch } from '../../core/store.ts';
import { lastOf, settles } from './batch.ts';
import type { PageCache } from './page-cache.ts';
import type { Readers, Runs, Source } from './source.ts';
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
  | { readonly kind: 'reading' | 'asking' | 'closed' }
  | { readonly kind: 'held'; readonly release: () => void }
  | { readonly kind: 'failed'; readonly error: unknown };

const reading: State = { kind: 'reading' };
const asking: State = { kind: 'asking' };
const closed: State = { kind: 'closed' };
const none: readonly Batch[] = [];
/** Milliseconds until a store that was unavailable is asked again, if nothing was heard of it before. */
const pause = 500;

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
  readonly #runs: Runs;
  readonly #end: number;
  readonly #settled: boolean;
  #state = reading;
  #source: Source;
  #after: number;
  #page: readonly Batch[] = none;
  #next = 0;
  /** Told when the log of this process grows, or when a run that is not here changes. */
  #joined: Readers | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Whether a run that is not here may have changed since it was looked up. */
  #stale = false;
  #ready: (() => void) | undefined;
  #waiting = false;

  /** @throws RivuletError `cursor_invalid` */
  constructor(pages: PageCache, runs: Runs, source: Source, { after = 0, until = 'final' }: CursorOptions = {}) {
    const last = source.durable;
    if (!Number.isSafeInteger(after) || after < 0 || after > last) throw fail('cursor_invalid', 'after', String(after));
    this.#pages = pages;
    this.#runs = runs;
    this.#source = source;
    this.#after = after;
    this.#end = until === 'now' ? last : Number.POSITIVE_INFINITY;
    this.#settled = until === 'settled';
    this.exhausted = source.final && after === last;
    // Joined here, not at the first read: a run that is done in one turn would be gone from the tail.
    if (until !== 'now') this.#follow(source);
  }

  get seen(): number {
    return this.#after;
  }

  /** Has a callback made each time there may be more, after a read that answered `later`. */
  onReady(callback: () => void): void {
    this.#ready = callback;
  }

  /**
   * The next events, with no missing or duplicate ones; `later` where they are still to come, `over` after the last one
   * or when the cursor is closed.
   * @throws RivuletError `log_removed`, and what the store throws
   */
  read(): Batch | 'later' | 'over' {
    const read = this.#read();
    this.#waiting = read === 'later';
    return read;
  }

  /** Reads no more. The caller that opened a cursor closes it; iterating to its end, or leaving the loop, does so too. */
  close(): void {
    if (this.#state === closed) return;
    if (this.#state.kind === 'held') this.#state.release();
    this.#state = closed;
    this.#page = none;
    this.#leave();
    this.wake();
  }

  /** Calls its reader back, if that waits. */
  wake(): void {
    if (!this.#waiting) return;
    this.#waiting = false;
    this.#ready?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    try {
      for (;;) {
        const batch = this.read();
        if (batch === 'over') return;
        if (batch !== 'later') yield batch;
        else
          await new Promise<void>((resolve) => {
            this.#ready = resolve;
          });
      }
    } finally {
      this.close();
    }
  }

  #read(): Batch | 'later' | 'over' {
    for (;;) {
      if (this.#state === closed || this.#after >= this.#end) return 'over';
      if (this.#state.kind === 'failed') throw this.#state.error;
      const batch = this.#nextOfPage();
      if (batch !== undefined) return batch;
      if (this.#state !== reading) return 'later';
      const source = this.#source;
      if (this.#after < source.durable) {
        const kept = source.atHand(this.#after);
        if (kept === undefined) this.#fetch();
        else this.#turnTo(kept);
      } else if (source.final) {
        return 'over';
      } else if (source.readers !== undefined) {
        return 'later';
      } else {
        if (this.#runs.stopping) return 'over';
        if (this.#unsubscribe !== undefined && !this.#stale) return 'later';
        this.#lookUp();
      }
    }
  }

  #nextOfPage(): Batch | undefined {
    while (this.#next < this.#page.length) {
      const batch = this.#page[this.#next];
      const end = Math.min(this.#end, this.#source.durable);
      if (batch !== undefined && lastOf(batch) > this.#after) {
        // A page may have more than the source knew of when it was looked up.
        if (batch.first > end || this.#after >= end) break;
        const fresh = part(batch, this.#after, this.#settled ? settledAt(batch, this.#after, end) : end);
        this.#after = lastOf(fresh);
        if (this.#settled && settles(fresh.lines.at(-1))) this.close();
        return fresh;
      }
      this.#next += 1;
    }
    // A reader that waits for the next token holds nothing of the last one.
    if (this.#next >= this.#page.length) this.#page = none;
    return undefined;
  }

  #turnTo(page: readonly Batch[]): void {
    this.#page = page;
    this.#next = 0;
  }

  #follow(source: Source): void {
    this.#source = source;
    const { readers, run_id, final } = source;
    if (readers !== undefined) {
      this.#leave();
      if (this.#state === closed) return;
      this.#joined = readers;
      readers.join(this);
    } else if (this.#unsubscribe === undefined && this.#state !== closed && !final) {
      this.#leave();
      // What happened between the look at the run and this is not told.
      this.#stale = true;
      this.#unsubscribe = this.#runs.on(run_id, this.#changed);
    }
  }

  #leave(): void {
    this.#joined?.leave(this);
    this.#joined = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  readonly #changed = (): void => {
    this.#stale = true;
    this.wake();
  };

  #fetch(): void {
    this.#ask(this.#pages.after(this.#source.run_id, this.#after).then((page) => this.#turnTo(page)));
  }

  #lookUp(): void {
    // Listens before it looks: what happens in between is not missed.
    this.#follow(this.#source);
    this.#stale = false;
    this.#ask(this.#runs.find(this.#source.run_id, this.#after).then((source) => this.#follow(source)));
  }

  #ask(answer: Promise<void>): void {
    this.#state = asking;
    answer
      .then(
        () => this.#become(reading),
        (error: unknown) => {
          if (error instanceof RivuletError && error.kind === 'store_unavailable') this.#hold();
          else this.#become({ kind: 'failed', error });
        },
      )
      .finally(() => this.wake());
  }

  #become(state: State): void {
    if (this.#state !== closed) this.#state = state;
  }

  /** The store is unavailable: the stream stays open, and it is asked again when it may be back. */
  #hold(): void {
    if (this.#state === closed) return;
    this.#stale = true;
    const again = (): void => {
      release();
      this.#become(reading);
      this.wake();
    };
    const timer = setTimeout(again, pause);
    const unsubscribe = this.#runs.on(this.#source.run_id, again);
    const release = (): void => {
      clearTimeout(timer);
      unsubscribe();
    };
    this.#state = { kind: 'held', release };
  }
}

/** The id of the first event of a batch, after one and up to another, that settles the run; or else the last id. */
function settledAt(batch: Batch, after: number, end: number): number {
  const last = Math.min(lastOf(batch), end);
  for (let id = Math.max(batch.first, after + 1); id < last; id += 1) {
    if (settles(batch.lines[id - batch.first])) return id;
  }
  return last;
}

// Whole batches are the rule, and go on as they are: what was made of them once serves every reader.
function part(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
