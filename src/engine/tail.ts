import type { Batch } from '../core/store.ts';
import { charsOf, lastOf } from './batch.ts';

const tailChars = 256 * 1024;

/**
 * The newest batches of a live log, kept while it has readers: those who keep up never ask the store;
 * everybody else reads there.
 */
export class Tail {
  #batches: Batch[] = [];
  #chars = 0;
  #readers = 0;

  /** A reader comes; returns how it leaves. With the last one the tail goes. */
  join(): () => void {
    this.#readers += 1;
    return () => {
      this.#readers -= 1;
      if (this.#readers > 0) return;
      this.#batches = [];
      this.#chars = 0;
    };
  }

  push(batch: Batch): void {
    if (this.#readers === 0) return;
    this.#batches.push(batch);
    this.#chars += charsOf(batch);
    while (this.#chars > tailChars && this.#batches.length > 1) {
      const oldest = this.#batches.shift();
      if (oldest !== undefined) this.#chars -= charsOf(oldest);
    }
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
}
