/** Errors in a minute after which a process ends: an agent has left something behind that does not stop. */
const maxErrors = 10;
const minute = 60_000;

/**
 * Counts the errors that agents throw outside of their runs. A few are the agent's bug, and other runs need not end for
 * it. Many say that the state of the process is not known any more.
 */
export class StrayErrors {
  /** The times of the last ones. */
  readonly #times: number[] = [];
  count = 0;

  /** Counts one. Returns whether there were more than ten within a minute. */
  add(now: number): boolean {
    this.count += 1;
    this.#times.push(now);
    if (this.#times.length <= maxErrors) return false;
    return now - (this.#times.shift() ?? now) < minute;
  }
}
