import { append } from '../../core/collections.ts';
import { charsOf, fullChars } from '../../core/lines.ts';
import type { Batch, Write } from '../../core/store.ts';
import { packLines, unpackLines } from '../packed-lines.ts';
import type { Arena, Slice } from './arena.ts';

/**
 * Characters, and events, that stay strings until they are packed as bytes. As strings, the garbage collector would
 * copy each token twice, and mark all tokens that were ever streamed in each of its cycles.
 */
const unpackedChars = 2 * 1024;
const unpackedLines = 64;

/** Events that were packed together, one line of JSON each. */
interface Packed {
  readonly first: number;
  readonly last: number;
  readonly slice: Slice;
}

/** The log of one run. */
export class MemoryLog {
  readonly #arena: Arena;
  #packed: Packed[] = [];
  #lines: string[] = [];
  #chars = 0;
  #last = 0;

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  /** Id of the last event. */
  get last(): number {
    return this.#last;
  }

  append({ lines }: Write): void {
    // Long events are packed apart from those before them: see `after`.
    const chars = charsOf(lines);
    if (chars >= fullChars) this.pack();
    for (const line of lines) this.#lines.push(line);
    this.#chars += chars;
    this.#last += lines.length;
    if (this.#chars >= fullChars) this.pack();
  }

  /** Packs the lines that are still strings, if there are many. */
  packMany(): void {
    if (this.#chars >= unpackedChars || this.#lines.length >= unpackedLines) this.pack();
  }

  /**
   * Batches of the events after that id, at most `limit` events, and up to the next pack that is long: see `Store`.
   */
  after(id: number, limit: number): Batch[] {
    const found: Batch[] = [];
    let delivered = id;
    let left = limit;
    const add = (first: number, lines: string[]): void => {
      const from = Math.max(0, delivered + 1 - first);
      const unread = lines.slice(from, from + left);
      if (unread.length > 0) found.push({ first: first + from, lines: unread });
      left -= unread.length;
      delivered += unread.length;
    };
    let index = this.#indexAfter(id);
    while (left > 0 && index < this.#packed.length) {
      if (found.length > 0 && this.#isLong(index)) return found;
      // Small packs are joined, because a reader writes each batch to its socket separately.
      const first = this.#packed[index]?.first ?? 0;
      const joined: string[] = [];
      for (let chars = 0; chars < fullChars && index < this.#packed.length; index += 1) {
        if (chars > 0 && this.#isLong(index)) break;
        const lines = this.#unpacked(index);
        chars += charsOf(lines);
        for (const line of lines) joined.push(line);
      }
      add(first, joined);
    }
    if (left > 0) add(this.#firstUnpacked, this.#lines);
    return found;
  }

  /** Moves the lines that are still strings to the arena. */
  pack(): void {
    if (this.#lines.length === 0) return;
    const slice = this.#arena.put(packLines(this.#lines));
    this.#packed = append(this.#packed, { first: this.#firstUnpacked, last: this.#last, slice });
    this.#lines = [];
    this.#chars = 0;
  }

  #isLong(index: number): boolean {
    const slice = this.#packed[index]?.slice;
    return slice !== undefined && slice.end - slice.start >= fullChars;
  }

  #unpacked(index: number): string[] {
    const packed = this.#packed[index];
    return packed === undefined ? [] : unpackLines(this.#arena.read(packed.slice));
  }

  /** Id of the first event that is not packed. */
  get #firstUnpacked(): number {
    return this.#last - this.#lines.length + 1;
  }

  /**
   * Index of the first pack that ends after that id, by bisection, so that a replay starts anywhere at the same cost.
   */
  #indexAfter(id: number): number {
    let low = 0;
    let high = this.#packed.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const packed = this.#packed[middle];
      if (packed !== undefined && packed.last > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
