import { append } from '../core/append.ts';
import type { Batch } from '../core/store.ts';
import { charsOf, lastOf } from './batch.ts';

const tailChars = 32 * 1024;
/** What a log without a reader keeps: enough for the beginning of a run, whose reader is on its way. */
const unreadChars = 4 * 1024;

/**
 * The newest batches of a live log: readers who keep up never ask the store; everybody else reads there.
 */
export class Tail {
  #batches: Batch[] = [];
  #chars = 0;
  #readers = 0;

  /** A reader comes. */
  join(): void {
    this.#readers += 1;
  }

  /** A reader goes; with the last one most of the tail does. */
  leave(): void {
    this.#readers -= 1;
    if (this.#readers === 0) this.#trim(unreadChars);
  }

  push(batch: Batch): void {
    this.#batches = append(this.#batches, batch);
    this.#chars += charsOf(batch);
    this.#trim(this.#readers > 0 ? tailChars : unreadChars);
  }

  /** The batches after an event; undefined where they are not kept any more. */
  after(id: number): Batch[] | undefined {
    const [oldest] = this.#batches;
    if (oldest === undefined || oldest.first > id + 1) return undefined;
    // From the end: a reader that keeps up wants the last batch.
    let from = this.#batches.length;
    while (from > 0 && lastOf(this.#batches[from - 1]) > id) from -= 1;
    return this.#batches.slice(from);
  }

  // A reader who keeps up has the newest batch, however long it is.
  #trim(chars: number): void {
    const least = this.#readers > 0 ? 1 : 0;
    while (this.#chars > chars && this.#batches.length > least) {
      const oldest = this.#batches.shift();
      if (oldest !== undefined) this.#chars -= charsOf(oldest);
    }
  }
}
