import type { BatchSource } from './writer.ts';

/** `pulled`: the next batch is here. Each pull ends in `pulled`, `ended` or `failed`. */
type State<Batch> =
  | { readonly kind: 'idle' | 'pulling' | 'ended' }
  | { readonly kind: 'pulled'; readonly batch: Batch }
  | { readonly kind: 'failed'; readonly error: unknown };

/** A source that pulls from an async iterable: one batch at a time, and the next one when that was read. */
export class Pulled<Batch> implements BatchSource<Batch> {
  readonly #batches: AsyncIterator<Batch, unknown>;
  readonly #close: () => void;
  #state: State<Batch> = { kind: 'idle' };
  #onReady = (): void => {};

  /** `close` ends the iteration, also while a batch is awaited. */
  constructor(batches: AsyncIterable<Batch>, close: () => void) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#close = close;
  }

  read(): Batch | 'later' | 'end' {
    const state = this.#state;
    if (state.kind === 'failed') throw state.error;
    if (state.kind === 'ended') return 'end';
    if (state.kind === 'pulled') {
      this.#state = { kind: 'idle' };
      return state.batch;
    }
    if (state.kind === 'idle') this.#pull();
    return 'later';
  }

  /**
   * An iterator says that a batch was the last one only when it is asked for the next. To know it earlier, each batch would
   * have to wait for the one after it. So the end is a system call of its own here.
   */
  get ended(): boolean {
    return this.#state.kind === 'ended';
  }

  onReady(callback: () => void): void {
    this.#onReady = callback;
  }

  close(): void {
    this.#close();
  }

  #pull(): void {
    this.#state = { kind: 'pulling' };
    this.#batches
      .next()
      .then(
        ({ done, value }) => {
          this.#state = done === true ? { kind: 'ended' } : { kind: 'pulled', batch: value };
        },
        (error: unknown) => {
          this.#state = { kind: 'failed', error };
        },
      )
      .finally(() => this.#onReady());
  }
}
