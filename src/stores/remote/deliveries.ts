import type { Outcome, Write } from '../../core/store.ts';
import { backoff, Pause } from './outage.ts';

/** Sends a commit, which has that number, to the server. Answers for each write what became of it. */
type Send = (writes: readonly Write[], number: number) => Promise<Outcome[]>;

/**
 * What an error says about a commit. `unanswered`: the server is away, and may have taken it. `refused`: the server took
 * nothing, for a reason that may pass. `too_much`: the same, and its size may be the reason. `rejected`: it took nothing,
 * and never will, because of a value in one of the writes.
 */
export type Verdict = 'unanswered' | 'refused' | 'too_much' | 'rejected';

/** A write of more characters may be the reason for a time-out by itself. */
const largeChars = 4 * 1024 * 1024;

/**
 * The commits of one writer, one after the other, each under its own number. One whose answer was lost is sent again
 * until the server answers; the server knows the number of the last one that it has taken, and does nothing twice.
 * So there is never more than one under way, and later ones wait.
 */
export class Deliveries {
  readonly #send: Send;
  readonly #verdict: (error: unknown) => Verdict;
  readonly #pause = new Pause();
  #number = 0;
  #last: Promise<unknown> = Promise.resolve();
  #closing = false;

  constructor(send: Send, verdict: (error: unknown) => Verdict) {
    this.#send = send;
    this.#verdict = verdict;
  }

  /** @throws what the server says, where nothing was taken and the same commit may be taken later */
  commit(writes: readonly Write[]): Promise<Outcome[]> {
    if (this.#closing) return Promise.reject(new Error('the store is closed'));
    const commit = this.#last.then(() => (writes.length === 0 ? [] : this.#deliver(writes)));
    this.#last = commit.catch(() => {});
    return commit;
  }

  /** The server may be back: what waits for it is sent at once. */
  wake(): void {
    this.#pause.end();
  }

  /** Nothing is tried again from now on. Resolves when everything is answered or has failed. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#pause.end();
    await this.#last;
  }

  /** `inDoubt`: something may have been taken already, so it is too late to refuse: it is asked again instead. */
  async #deliver(writes: readonly Write[], inDoubt = false): Promise<Outcome[]> {
    this.#number += 1;
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.#send(writes, this.#number);
      } catch (error) {
        const verdict = this.#verdict(error);
        // The server looks at the number first, so this holds for a copy that was sent before as well.
        if (verdict === 'rejected') return this.#apart(writes, error);
        if (!inDoubt && verdict === 'too_much' && isLarge(writes)) return [{ rejected: error }];
        inDoubt ||= verdict === 'unanswered';
        if (!inDoubt) throw error;
        if (!this.#closing) await this.#pause.of(backoff(tries));
        if (this.#closing) throw error;
      }
    }
  }

  /** Finds the write that made the server reject the commit: each is a commit of its own. */
  async #apart(writes: readonly Write[], error: unknown): Promise<Outcome[]> {
    if (writes.length === 1) return [{ rejected: error }];
    const outcomes: Outcome[] = [];
    for (const write of writes) outcomes.push(...(await this.#deliver([write], true)));
    return outcomes;
  }
}

/** The engine puts a write that is larger than a commit may be into a commit of its own. */
const isLarge = (writes: readonly Write[]): boolean =>
  writes.length === 1 && JSON.stringify(writes[0]).length > largeChars;
