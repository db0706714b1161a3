import { tokenHead } from '../../core/encode.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import type { BatchSource } from './writer.ts';

/** Lines that are held back at most; a token more, and all are read. */
const maxHeld = 1_000;

/**
 * Reads tokens at most once in an interval, all those since the last time in one batch. Any other event is read at once,
 * after the tokens before it. For projections that write one frame for the tokens of a batch.
 */
export class Paced implements BatchSource<Batch> {
  readonly #source: BatchSource<Batch>;
  readonly #interval: number;
  #held: { readonly first: number; readonly lines: string[] } | undefined;
  #sourceEnded = false;
  #timer: NodeJS.Timeout | undefined;
  #onReady = (): void => {};

  constructor(source: BatchSource<Batch>, interval: number) {
    this.#source = source;
    this.#interval = interval;
  }

  read(): Batch | 'later' | 'end' {
    for (;;) {
      if (this.#held !== undefined && this.#isDue(this.#held)) return this.#take(this.#held);
      if (this.#sourceEnded) return 'end';
      const batch = this.#source.read();
      if (batch === 'later') return batch;
      if (batch === 'end') this.#sourceEnded = true;
      else if (this.#held === undefined) this.#held = { first: batch.first, lines: [...batch.lines] };
      else this.#held.lines.push(...batch.lines);
    }
  }

  get ended(): boolean {
    return this.#held === undefined && (this.#sourceEnded || this.#source.ended);
  }

  onReady(callback: () => void): void {
    this.#onReady = callback;
    this.#source.onReady(callback);
  }

  close(): void {
    this.#held = undefined;
    this.#sourceEnded = true;
    clearTimeout(this.#timer);
    this.#source.close();
  }

  #isDue({ lines }: Batch): boolean {
    if (this.#timer === undefined || this.#sourceEnded || lines.length > maxHeld) return true;
    return lines.at(-1)?.startsWith(tokenHead) !== true;
  }

  #take(held: Batch): Batch {
    this.#held = undefined;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onReady();
    }, this.#interval);
    return held;
  }
}
