import type { Outcome, Write } from '../../core/ports/run-store.ts';
import { Delay, retry } from '../../core/timing.ts';
import type { CommitFailure } from './errors.ts';

/** Sends a commit with its number to the server. Resolves with the outcome of each write. */
type Send = (writes: readonly Write[], number: number) => Promise<Outcome[]>;

/** A write with more characters may cause a time-out by itself. */
const largeChars = 4 * 1024 * 1024;

/**
 * Sends the commits of one store, one at a time, each with the next number. When the answer to a commit is lost, the
 * queue sends the commit again until the server answers. The server keeps the number of the last commit that it
 * applied, so that it applies none twice. Later commits wait meanwhile.
 */
export class CommitQueue {
  readonly #send: Send;
  readonly #classify: (error: unknown) => CommitFailure;
  readonly #delay = new Delay();
  #number = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(send: Send, classify: (error: unknown) => CommitFailure) {
    this.#send = send;
    this.#classify = classify;
  }

  /** @throws the server's error, where nothing was applied and the same commit may succeed later */
  commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (this.#delay.closed) return Promise.reject(new Error('the store is closed'));
    const commit = this.#last.then(() => this.#sendUntilAnswered(writes));
    this.#last = commit.catch(() => {});
    return commit;
  }

  /** Retries at once, because the server may be reachable again. */
  retryNow(): void {
    this.#delay.end();
  }

  /** Stops retrying. Resolves when each commit was answered or has failed. */
  async close(): Promise<void> {
    this.#delay.close();
    await this.#last;
  }

  /**
   * With `inDoubt`, a part may have been applied already: it is too late to fail, so refused commits are sent again.
   */
  async #sendUntilAnswered(writes: readonly Write[], inDoubt = false): Promise<Outcome[]> {
    this.#number += 1;
    let failure: CommitFailure | undefined;
    const again = (error: unknown): boolean => {
      failure = this.#classify(error);
      if (failure === 'rejected') return false;
      inDoubt ||= failure === 'unanswered';
      return inDoubt;
    };
    try {
      return await retry(() => this.#send(writes, this.#number), { again, delay: this.#delay });
    } catch (error) {
      // The server compares the number first, so this is true of a copy that was sent before as well.
      if (failure === 'rejected') return this.#sendSeparately(writes, error);
      if (!inDoubt && failure === 'too_large' && isLarge(writes)) return [{ rejected: error }];
      throw error;
    }
  }

  /** Finds the write for which the server rejected the commit, by sending each write as a commit of its own. */
  async #sendSeparately(writes: readonly Write[], error: unknown): Promise<Outcome[]> {
    if (writes.length === 0) throw error;
    if (writes.length === 1) return [{ rejected: error }];
    const outcomes: Outcome[] = [];
    for (const write of writes) outcomes.push(...(await this.#sendUntilAnswered([write], true)));
    return outcomes;
  }
}

/** The engine puts a write that exceeds the size of a commit into a commit of its own. */
const isLarge = (writes: readonly Write[]): boolean =>
  writes.length === 1 && JSON.stringify(writes[0]).length > largeChars;
