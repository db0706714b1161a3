import type { Statements } from './statements.ts';

/** Numbers that are reserved at a time: their row is one more page that a commit changes. A restart skips the rest. */
const block = 1024;

/**
 * Numbers of runs and sessions, each given once. The file belongs to one process, so the next number is known in memory.
 * `next` must be called in a transaction; after a failed one, `recover` reads the file again.
 */
export class Numbers {
  readonly #sql: Statements;
  /** The last number that was given, and the last one that is reserved in the file. */
  #newest = 0;
  #reserved = 0;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  recover(): void {
    this.#reserved = this.#sql.reservedNumbers.get()?.reserved ?? 0;
    this.#newest = this.#reserved;
  }

  next(): number {
    this.#newest += 1;
    if (this.#newest > this.#reserved) {
      this.#reserved += block;
      this.#sql.reserveNumbers(this.#reserved);
    }
    return this.#newest;
  }
}
