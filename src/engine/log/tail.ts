import { append } from '../../core/collections.ts';
import { charsOf } from '../../core/lines.ts';
import type { Batch } from '../../core/ports/run-store.ts';

/**
 * A batch of a live log, with a field for what its readers share, which `readBatch` sets. The field is there from the
 * beginning, so that all batches have one shape.
 */
export function liveBatch(first: number, lines: readonly string[]): Batch {
  const batch = { first, lines, projected: undefined };
  return batch;
}

/** The id of a batch's last event; 0 without a batch. */
export const lastIdOf = (batch: Batch | undefined): number =>
  batch === undefined ? 0 : batch.first + batch.lines.length - 1;

/** A reader of a live log. */
export interface Reader {
  /** The id of the last event that it has. */
  readonly seen: number;
  /** There may be more to read. Called after each commit, and when the log ends. */
  wake(): void;
}

/** Characters that are kept for readers that fall behind, before they have to read from the store. */
const maxTailChars = 32 * 1024;
/**
 * Characters that are kept while there is no reader: enough for the first events of a run whose reader is about to
 * connect.
 */
const maxUnreadChars = 4 * 1024;

/**
 * The newest batches of a live log, and its readers. Readers that keep up never read from the store; all others do.
 * Batches that every reader has are dropped at once, while they are cheap to collect.
 */
export class Tail {
  #batches: Batch[] = [];
  #chars = 0;
  #readers: Reader[] = [];

  /** From now on the reader is woken. It has to read once by itself: earlier commits do not wake it. */
  add(reader: Reader): void {
    this.#readers = append(this.#readers, reader);
  }

  /** Does nothing for a reader that is removed already. */
  remove(reader: Reader): void {
    if (!this.#readers.includes(reader)) return;
    // A new list: `wake` may be iterating over the old one.
    this.#readers = this.#readers.filter((one) => one !== reader);
    if (this.#readers.length === 0) this.#trim(maxUnreadChars, 0);
  }

  push(batch: Batch): void {
    this.#batches = append(this.#batches, batch);
    this.#chars += charsOf(batch.lines);
    // Keeps the newest batch, however long it is, for readers that keep up.
    if (this.#readers.length > 0) this.#trim(maxTailChars, 1);
    else this.#trim(maxUnreadChars, 0);
  }

  /** Wakes all readers. A reader that is added meanwhile may be woken for nothing. */
  wake(): void {
    const readers = this.#readers;
    for (const reader of readers) reader.wake();
    if (this.#readers.length === 0) return;
    let seen = Number.POSITIVE_INFINITY;
    for (const reader of this.#readers) if (reader.seen < seen) seen = reader.seen;
    while (this.#batches.length > 0 && lastIdOf(this.#batches[0]) <= seen) this.#drop();
  }

  /** The batch with the event after an id, which is not the last one's; undefined where the tail no longer has it. */
  after(id: number): Batch | undefined {
    // From the end: most readers need the last batch. The tail has a few hundred at most.
    for (let index = this.#batches.length - 1; index >= 0; index -= 1) {
      const batch = this.#batches[index];
      if (batch !== undefined && batch.first <= id + 1) return batch;
    }
    return undefined;
  }

  #trim(chars: number, least: number): void {
    while (this.#chars > chars && this.#batches.length > least) this.#drop();
  }

  #drop(): void {
    const oldest = this.#batches.shift();
    // Most drops leave nothing to count.
    if (oldest !== undefined) this.#chars = this.#batches.length === 0 ? 0 : this.#chars - charsOf(oldest.lines);
  }
}
