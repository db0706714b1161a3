import { append } from '../../core/collections.ts';
import type { Batch, Write } from '../../core/store.ts';
import type { Arena, Place } from './arena.ts';

/**
 * Characters, and events, that are kept as strings until they are put away as bytes. As strings, each token would be copied twice
 * by the garbage collector before it came to rest, and all that was ever streamed be looked at by each of its rounds.
 */
const looseChars = 2 * 1024;
const looseLines = 64;
/** Characters of a batch that is read. */
const batchChars = 16 * 1024;

/** Events that were put away together, one line of JSON each. */
interface Packed {
  readonly first: number;
  readonly last: number;
  readonly place: Place;
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

  append({ lines }: Write): void {
    for (const line of lines) {
      this.#lines.push(line);
      this.#chars += line.length;
    }
    this.#last += lines.length;
    if (this.#chars >= looseChars || this.#lines.length >= looseLines) this.pack();
  }

  /** Batches of the events after that id, at most `limit` events. */
  after(id: number, limit: number): Batch[] {
    const found: Batch[] = [];
    let seen = id;
    let left = limit;
    const add = (first: number, lines: string[]): void => {
      const from = Math.max(0, seen + 1 - first);
      const fresh = lines.slice(from, from + left);
      if (fresh.length > 0) found.push({ first: first + from, lines: fresh });
      left -= fresh.length;
      seen += fresh.length;
    };
    let index = this.#indexAfter(id);
    while (left > 0 && index < this.#packed.length) {
      // What was put away bit by bit is read in one: a reader makes a write of each batch.
      const first = this.#packed[index]?.first ?? 0;
      const texts: string[] = [];
      for (let chars = 0; chars < batchChars && index < this.#packed.length; index += 1) {
        const packed = this.#packed[index];
        const text = packed === undefined ? '' : this.#arena.read(packed.place);
        texts.push(text);
        chars += text.length;
      }
      add(first, texts.join('\n').split('\n'));
    }
    if (left > 0) add(this.#loose, this.#lines);
    return found;
  }

  /** Puts away what is still loose; for a run that is over, or grows long. */
  pack(): void {
    if (this.#lines.length === 0) return;
    const place = this.#arena.put(this.#lines.join('\n'));
    this.#packed = append(this.#packed, { first: this.#loose, last: this.#last, place });
    this.#lines = [];
    this.#chars = 0;
  }

  /** Id of the first event that is not put away. */
  get #loose(): number {
    return this.#last - this.#lines.length + 1;
  }

  /** Index of the first that ends after that id, by bisection: replay starts anywhere at no cost. */
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
