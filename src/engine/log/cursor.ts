import { fail, RivuletError } from '../../core/errors.ts';
import { isFinal } from '../../core/status.ts';
import type { Batch, RunRow } from '../../core/store.ts';
import { lastOf, settles } from './batch.ts';
import type { Pages } from './page-cache.ts';
import { RunLog } from './run-log.ts';
import type { Reader } from './tail.ts';

export interface CursorOptions {
  /** Id of the last event already seen. Default 0: from the beginning. */
  readonly after?: number;
  /** Where to stop: at what is there now, at the next final event or await, or at the final one (default). */
  readonly until?: 'now' | 'settled' | 'final';
}

/** Where a cursor looks for a run: its log while it is live in this process, its row in the store otherwise. */
export interface Runs {
  /** `seen` is the id of the last event that the reader has: what does not know of it is no place to look. */
  find(run_id: string, seen?: number): Promise<RunLog | RunRow>;
  /** Calls back whenever a run may have come, gone, or got on in another process, and when the server stops. */
  on(run_id: string, callback: () => void): () => void;
  readonly stopping: boolean;
}

const none: readonly Batch[] = [];

/**
 * A reader's place in a log. Replay and live are one: what is durable after it is read, from the log's tail or
 * the store; where there is nothing, the reader is called when the log moves. Nothing is queued for a reader, so
 * a slow one costs no memory. It calls back instead of promising, because a token that is read as soon as it is
 * durable is most of what a server does, and each promise on its way costs as much as its frame.
 */
export class Cursor implements Reader {
  /** The run is over and there is nothing after the cursor, nor will there be. */
  readonly exhausted: boolean;
  readonly #pages: Pages;
  readonly #runs: Runs;
  readonly #end: number;
  readonly #settled: boolean;
  #source: RunLog | RunRow;
  #after: number;
  #page: readonly Batch[] = none;
  #next = 0;
  /** Asking the store. */
  #away = false;
  /** The run is in no process, or in another one, and may have got on since it was looked for. */
  #stale = false;
  #deafen: (() => void) | undefined;
  #held: (() => void) | undefined;
  #ready: (() => void) | undefined;
  #waiting = false;
  #failure: unknown;
  #closed = false;

  /** @throws RivuletError `cursor_invalid` */
  constructor(pages: Pages, runs: Runs, source: RunLog | RunRow, { after = 0, until = 'final' }: CursorOptions = {}) {
    const last = durable(source);
    if (!Number.isSafeInteger(after) || after < 0 || after > last) throw fail('cursor_invalid', 'after', String(after));
    this.#pages = pages;
    this.#runs = runs;
    this.#source = source;
    this.#after = after;
    this.#end = until === 'now' ? last : Number.POSITIVE_INFINITY;
    this.#settled = until === 'settled';
    this.exhausted = isOver(source) && after === last;
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
   * The next events, without a gap or a double; `later` where they are still to come, `over` after the last one
   * or when the cursor is closed.
   * @throws RivuletError `store_failed`, `log_removed`, and what the store throws
   */
  read(): Batch | 'later' | 'over' {
    const read = this.#read();
    this.#waiting = read === 'later';
    return read;
  }

  /** Reads no more. Whoever opened a cursor closes it; to iterate over it to its end, or out of it, does so too. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#page = none;
    this.#leave();
    this.#held?.();
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
      if (this.#closed || this.#after >= this.#end) return 'over';
      if (this.#failure !== undefined) throw this.#failure;
      const batch = this.#atHand();
      if (batch !== undefined) return batch;
      if (this.#away || this.#held !== undefined) return 'later';
      const source = this.#source;
      if (this.#after < durable(source)) {
        const kept = source instanceof RunLog ? source.tail.after(this.#after) : undefined;
        if (kept === undefined) this.#fetch();
        else this.#turnTo(kept);
      } else if (isOver(source)) {
        return 'over';
      } else if (source instanceof RunLog && !source.detached) {
        if (source.failure !== undefined) throw source.failure;
        return 'later';
      } else {
        if (this.#runs.stopping) return 'over';
        if (this.#deafen !== undefined && !this.#stale) return 'later';
        this.#seek();
      }
    }
  }

  #atHand(): Batch | undefined {
    while (this.#next < this.#page.length) {
      const batch = this.#page[this.#next];
      const end = Math.min(this.#end, durable(this.#source));
      if (batch !== undefined && lastOf(batch) > this.#after) {
        if (batch.first > end) break;
        const fresh = from(batch, this.#after, end);
        this.#after = lastOf(fresh);
        if (this.#settled && settles(fresh.lines.at(-1))) this.close();
        return fresh;
      }
      this.#next += 1;
    }
    // Who waits for the next token holds nothing of the last one.
    if (this.#next >= this.#page.length) this.#page = none;
    return undefined;
  }

  #turnTo(page: readonly Batch[]): void {
    this.#page = page;
    this.#next = 0;
  }

  #follow(source: RunLog | RunRow): void {
    const here = source instanceof RunLog && !source.detached;
    if (!here && this.#deafen !== undefined) {
      this.#source = source;
      return;
    }
    this.#leave();
    this.#source = source;
    if (this.#closed) return;
    if (here) {
      source.tail.join(this);
    } else if (!isOver(source)) {
      this.#stale = true;
      this.#deafen = this.#runs.on(idOf(source), this.#news);
    }
  }

  #leave(): void {
    if (this.#source instanceof RunLog) this.#source.tail.leave(this);
    this.#deafen?.();
    this.#deafen = undefined;
  }

  readonly #news = (): void => {
    this.#stale = true;
    this.wake();
  };

  #fetch(): void {
    this.#go(this.#pages.after(idOf(this.#source), this.#after).then((page) => this.#turnTo(page)));
  }

  #seek(): void {
    // Listens before it looks: what happens in between is not missed.
    this.#follow(this.#source);
    this.#stale = false;
    this.#go(this.#runs.find(idOf(this.#source), this.#after).then((source) => this.#follow(source)));
  }

  #go(work: Promise<void>): void {
    this.#away = true;
    work
      .catch((error: unknown) => {
        if (error instanceof RivuletError && error.kind === 'store_away') this.#hold();
        else this.#failure = error;
      })
      .finally(() => {
        this.#away = false;
        this.wake();
      });
  }

  /** The store does not answer: the stream stays open until it does. */
  #hold(): void {
    this.#stale = true;
    const off = this.#runs.on(idOf(this.#source), () => {
      this.#held?.();
      this.wake();
    });
    this.#held = () => {
      this.#held = undefined;
      off();
    };
  }
}

const idOf = (source: RunLog | RunRow): string => (source instanceof RunLog ? source.row.run_id : source.run_id);
const durable = (source: RunLog | RunRow): number => (source instanceof RunLog ? source.durable : source.last);
const isOver = (source: RunLog | RunRow): boolean => (source instanceof RunLog ? source.ended : isFinal(source.status));

// Whole batches are the rule, and go on as they are: what was made of them once serves every reader.
function from(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
