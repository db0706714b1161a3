import type { Lease } from '../../core/dispatcher.ts';

/** A run's slot, which others may use while the run awaits. */
export class SlotLease implements Lease {
  readonly #lend: () => () => void;
  #takeBack: (() => void) | undefined;
  #over = false;

  constructor(lend: () => () => void) {
    this.#lend = lend;
  }

  rest(): void {
    if (!this.#over) this.#takeBack ??= this.#lend();
  }

  wake(): void {
    this.#takeBack?.();
    this.#takeBack = undefined;
  }

  /** The run is over here, resting or not. */
  end(): void {
    this.wake();
    this.#over = true;
  }
}
