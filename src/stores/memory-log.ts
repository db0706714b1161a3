import { append } from '../core/append.ts';
import { isSettled } from '../core/status.ts';
import type { Batch, Write } from '../core/store.ts';

/** A batch that grows is copied for each page that is read of it. */
const batchLines = 64;

interface KeptBatch {
  readonly first: number;
  count: number;
  /** Bytes once the run is over: as strings, all that was ever streamed would be looked at by each garbage collection. */
  lines: string[] | Buffer;
}

/** The log of one run. */
export class MemoryLog {
  #batches: KeptBatch[] = [];
  /** Whether the last batch may still grow. */
  #open = false;

  /**
   * A write that only goes on with the log is added to the batch before it; any other ends that one. But for the
   * one that makes the run: it has an event or two, which most runs would otherwise keep in a batch of their own.
   */
  append({ row, expect, lines, grown = false }: Write): void {
    if (lines.length === 0) return;
    const last = this.#batches.at(-1);
    if (
      (grown || last?.first === 1) &&
      this.#open &&
      last !== undefined &&
      Array.isArray(last.lines) &&
      last.count < batchLines
    ) {
      last.lines.push(...lines);
      last.count += lines.length;
    } else {
      this.#batches = append(this.#batches, { first: expect + 1, count: lines.length, lines: [...lines] });
    }
    this.#open = grown || (expect === 0 && !isSettled(row.status));
  }

  /** Batches with events after that id, about `limit` events. */
  after(id: number, limit: number): Batch[] {
    const found: Batch[] = [];
    const growing = this.#open ? this.#batches.at(-1) : undefined;
    let count = 0;
    for (let index = this.#indexAfter(id); count < limit; index += 1) {
      const batch = this.#batches[index];
      if (batch === undefined) break;
      const { first, lines } = batch;
      const read = Array.isArray(lines) ? lines : lines.toString().split('\n');
      found.push({ first, lines: batch === growing ? [...read] : read });
      count += batch.count;
    }
    return found;
  }

  /** The run is over: it is only read from now on. */
  freeze(): void {
    this.#open = false;
    for (const batch of this.#batches) {
      if (Array.isArray(batch.lines)) batch.lines = Buffer.from(batch.lines.join('\n'));
    }
  }

  /** Index of the first batch with an event after that id, by bisection: replay starts anywhere at no cost. */
  #indexAfter(id: number): number {
    let low = 0;
    let high = this.#batches.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const batch = this.#batches[middle];
      if (batch !== undefined && batch.first + batch.count - 1 > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
