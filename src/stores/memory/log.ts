import { charsOf, fullChars } from '../../core/lines.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { packLines, unpackLines } from '../packed-lines.ts';

/** Lines of so many characters, or so many lines, are packed into one text, which takes less memory. */
const packedChars = 2 * 1024;
const packedLines = 64;

/** Events that were packed together. */
interface Pack {
  readonly first: number;
  readonly text: string;
  readonly isLong: boolean;
}

/** The log of one run. */
export class MemoryLog {
  readonly #packs: Pack[] = [];
  #lines: string[] = [];
  #chars = 0;
  #last = 0;

  /** Id of the last event. */
  get last(): number {
    return this.#last;
  }

  append(lines: readonly string[]): void {
    const chars = charsOf(lines);
    // A long event begins a pack, because it begins a page.
    if (chars >= fullChars) this.pack();
    for (const line of lines) this.#lines.push(line);
    this.#chars += chars;
    this.#last += lines.length;
    if (this.#chars >= packedChars || this.#lines.length >= packedLines) this.pack();
  }

  /** A batch of the events after that id: see `RunStore.events`. */
  after(id: number, limit: number): Batch[] {
    const lines: string[] = [];
    let chars = 0;
    const add = (first: number, packed: readonly string[]): void => {
      const unread = packed.slice(Math.max(0, id + 1 - first), id + 1 - first + limit);
      for (const line of unread) lines.push(line);
      chars += charsOf(unread);
    };
    for (let index = this.#indexOf(id + 1); index < this.#packs.length; index += 1) {
      const pack = this.#packs[index] as Pack;
      if (lines.length > 0 && (pack.isLong || chars >= fullChars)) return [{ first: id + 1, lines }];
      add(pack.first, unpackLines(pack.text));
      if (lines.length >= limit) break;
    }
    if (lines.length < limit && chars < fullChars) add(this.#firstUnpacked, this.#lines);
    return lines.length === 0 ? [] : [{ first: id + 1, lines }];
  }

  /** Packs the lines that are still apart. */
  pack(): void {
    if (this.#lines.length === 0) return;
    const text = packLines(this.#lines);
    this.#packs.push({ first: this.#firstUnpacked, text, isLong: this.#chars >= fullChars });
    this.#lines = [];
    this.#chars = 0;
  }

  /** Id of the first event that is not packed. */
  get #firstUnpacked(): number {
    return this.#last - this.#lines.length + 1;
  }

  /** Index of the pack with that event, by bisection: a reader may begin anywhere. */
  #indexOf(id: number): number {
    let low = 0;
    let high = this.#packs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#packs[middle + 1]?.first ?? this.#firstUnpacked) > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
