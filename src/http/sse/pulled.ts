import type { Source } from './writer.ts';

/** A source that pulls from an async iterable: one batch at a time, and the next one when that was read. */
export class Pulled<Batch> implements Source<Batch> {
  readonly #batches: AsyncIterator<Batch, unknown>;
  readonly #close: () => void;
  #state: 'idle' | 'pulling' | 'ended' = 'idle';
  #next: { readonly batch: Batch } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #onReady = (): void => {};

  /** `close` ends the iteration, also while a batch is awaited. */
  constructor(batches: AsyncIterable<Batch>, close: () => void) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#close = close;
  }

  read(): Batch | 'later' | 'end' {
    if (this.#failure !== undefined) throw this.#failure.error;
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) return next.batch;
    if (this.#state === 'ended') return 'end';
    if (this.#state === 'idle') this.#pull();
    return 'later';
  }

  onReady(callback: () => void): void {
    this.#onReady = callback;
  }

  close(): void {
    this.#close();
  }

  #pull(): void {
    this.#state = 'pulling';
    this.#batches
      .next()
      .then(
        ({ done, value }) => {
          this.#state = done === true ? 'ended' : 'idle';
          if (done !== true) this.#next = { batch: value };
        },
        (error: unknown) => {
          this.#failure = { error };
        },
      )
      .finally(() => this.#onReady());
  }
}
