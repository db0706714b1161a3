import { append } from '../../core/collections.ts';
import type { Batch } from '../../core/store.ts';
import { charsOf, lastIdOf } from './batch.ts';

/** A reader who keeps up with a log. */
export interface Reader {
  /** Id of the last event that it has. */
  readonly seen: number;
  /** There may be more. Told of each commit, of a failure, and when the run leaves. */
  wake(): void;
}

/** What a reader who falls behind finds here, before it has to ask the store. */
const maxTailChars = 32 * 1024;
/** What a log without a reader keeps: enough for the beginning of a run, whose reader is on its way. */
const maxUnreadChars = 4 * 1024;

/**
 * The newest batches of a live log, and who reads them: readers who keep up never ask the store; everybody else
 * reads there. What all of them have is let go of at once. Kept for longer, it would outlive V8's nursery, and
 * each token be copied twice and collected with the old.
 */
export class Tail {
  #batches: Batch[] = [];
  #chars = 0;
  /** A list, not an emitter, which is six objects for each run. */
  #readers: Reader[] = [];

  /** From now on it is woken. It looks first: of what happened before, it is not told. */
  add(reader: Reader): void {
    this.#readers = append(this.#readers, reader);
  }

  /** Changes nothing for a reader that has left. */
  remove(reader: Reader): void {
    if (!this.#readers.includes(reader)) return;
    // A new list: the old one may be on its way through `wake`.
    this.#readers = this.#readers.filter((one) => one !== reader);
    if (this.#readers.length === 0) this.#trim(maxUnreadChars, 0);
  }

  push(batch: Batch): void {
    this.#batches = append(this.#batches, batch);
    this.#chars += charsOf(batch);
    // A reader who keeps up has the newest batch, however long it is.
    if (this.#readers.length > 0) this.#trim(maxTailChars, 1);
    else this.#trim(maxUnreadChars, 0);
  }

  /** Wakes everybody. Those who come meanwhile may be woken too, and look in vain. */
  wake(): void {
    const readers = this.#readers;
    for (const reader of readers) reader.wake();
    if (this.#readers.length === 0) return;
    let seen = Number.POSITIVE_INFINITY;
    for (const reader of this.#readers) if (reader.seen < seen) seen = reader.seen;
    while (this.#batches.length > 0 && lastIdOf(this.#batches[0]) <= seen) this.#drop();
  }

  /** The batches after an event; undefined where they are not kept any more. */
  after(id: number): Batch[] | undefined {
    const [oldest] = this.#batches;
    if (oldest === undefined || oldest.first > id + 1) return undefined;
    // From the end: a reader that keeps up wants the last batch.
    let from = this.#batches.length;
    while (from > 0 && lastIdOf(this.#batches[from - 1]) > id) from -= 1;
    return this.#batches.slice(from);
  }

  #trim(chars: number, least: number): void {
    while (this.#chars > chars && this.#batches.length > least) this.#drop();
  }

  #drop(): void {
    const oldest = this.#batches.shift();
    if (oldest !== undefined) this.#chars -= charsOf(oldest);
  }
}
