import { ClientError, failure } from './client-error.ts';

/** A timer takes no more, and would fire at once. */
const longest = 2 ** 31 - 1;

/** Ends a connection that is dead without saying so: a laptop that slept, a router that forgot. */
export class Watchdog {
  readonly #silent = new AbortController();
  readonly #silence: number;
  /** Of the connection: fires with the outer signal, and when nothing came for too long. */
  readonly signal: AbortSignal;

  /** `silence` is in milliseconds; Infinity for any. */
  constructor(outer: AbortSignal, silence: number) {
    this.signal = AbortSignal.any([outer, this.#silent.signal]);
    this.#silence = Math.min(silence, longest);
  }

  /** Waits for work that the signal ends. Only waiting is timed: who reads slowly has not lost the connection. */
  async inTime<T>(work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      const message = `Nothing came for ${this.#silence} ms, not even a comment.`;
      this.#silent.abort(new ClientError({ code: 'silent', status: 0, message }));
    }, this.#silence);
    try {
      return await work;
    } catch (error) {
      throw failure(error, this.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}
