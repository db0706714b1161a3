import { orUnavailable } from './store-calls.ts';

/** Milliseconds for which a check counts that has passed, and one that has failed. */
type Times = readonly [passed: number, failed: number];

const passed = Promise.resolve();

/**
 * A check for `GET /ready`, made once in some seconds at most. A store that can be read may take no writes: its disk or its
 * memory is full, or it has become a replica. An idle node writes nothing that would show it.
 */
export class ReadyCheck {
  readonly #check: () => Promise<unknown>;
  readonly #requestTimeout: number;
  readonly #times: Times;
  /** The last answer, and until when it counts, in milliseconds of `performance.now`; for ever while a check is made. */
  #answer = passed;
  #until = 0;

  constructor(check: () => Promise<unknown>, requestTimeout: number, times: Times = [5_000, 1_000]) {
    this.#check = check;
    this.#requestTimeout = requestTimeout;
    this.#times = times;
  }

  /** Something else has shown that the check would pass. */
  onPassed(): void {
    this.#know(passed, this.#times[0]);
  }

  /** @throws RivuletError `store_unavailable` where the check fails, or takes too long */
  passes(): Promise<void> {
    if (performance.now() < this.#until) return this.#answer;
    const checked = this.#checkOnce();
    this.#know(orUnavailable(checked, this.#requestTimeout), Number.POSITIVE_INFINITY);
    // A check may end after the time-out, and is not made twice at once.
    checked.then(
      () => this.onPassed(),
      () => this.#know(this.#answer, this.#times[1]),
    );
    return this.#answer;
  }

  async #checkOnce(): Promise<void> {
    await this.#check();
  }

  #know(answer: Promise<void>, milliseconds: number): void {
    this.#answer = answer;
    this.#until = performance.now() + milliseconds;
  }
}
