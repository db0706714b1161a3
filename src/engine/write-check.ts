import type { Store } from '../core/store.ts';
import { orUnavailable } from './store-access.ts';

/** Milliseconds for which the store counts as one that takes writes after a commit, and as one that takes none. */
const [takesFor, refusesFor] = [5_000, 1_000];

const taken = Promise.resolve();

/**
 * Whether the store takes writes. A store that can be read may take none: its disk or its memory is full, or it has become
 * a replica. An idle node writes nothing that would show it, so the check commits nothing, once in some seconds at most.
 */
export class WriteCheck {
  readonly #store: Pick<Store, 'commit'>;
  readonly #requestTimeout: number;
  /** The last answer, and until when it counts, in milliseconds of `performance.now`; for ever while a check is made. */
  #answer = taken;
  #until = 0;

  constructor(store: Pick<Store, 'commit'>, requestTimeout: number) {
    this.#store = store;
    this.#requestTimeout = requestTimeout;
  }

  /** The store has taken a commit. */
  onCommitted(): void {
    this.#know(taken, takesFor);
  }

  /** @throws RivuletError `store_unavailable` where the store takes no writes, or does not answer in time */
  takesWrites(): Promise<void> {
    if (performance.now() < this.#until) return this.#answer;
    const committed = this.#commitNothing();
    this.#know(orUnavailable(committed, this.#requestTimeout), Number.POSITIVE_INFINITY);
    // A store may answer after the time-out, and is not asked twice at once.
    committed.then(
      () => this.#know(taken, takesFor),
      () => this.#know(this.#answer, refusesFor),
    );
    return this.#answer;
  }

  async #commitNothing(): Promise<void> {
    await this.#store.commit([]);
  }

  #know(answer: Promise<void>, milliseconds: number): void {
    this.#answer = answer;
    this.#until = performance.now() + milliseconds;
  }
}
