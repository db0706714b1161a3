import { broken, failure } from './client-error.ts';

/** A timer takes no more, and would fire at once. */
const longest = 2 ** 31 - 1;

/** Ends a connection that is dead without an error: after a laptop slept, or a router lost its state. */
export class Watchdog {
  readonly #silent = new AbortController();
  readonly #idleTimeout: number;
  /** Of the connection: fires with the outer signal, and when nothing came for too long. */
  readonly signal: AbortSignal;

  /** `idleTimeout` is in milliseconds; Infinity for any. */
  constructor(outer: AbortSignal, idleTimeout: number) {
    this.signal = AbortSignal.any([outer, this.#silent.signal]);
    this.#idleTimeout = Math.min(idleTimeout, longest);
  }

  /** Waits for work; the signal ends it as well. Only waiting is timed: a slow reader has not lost the connection. */
  async inTime<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silent = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = broken('silent', `Nothing came for ${this.#idleTimeout} ms.`);
        this.#silent.abort(error);
        reject(error);
      }, this.#idleTimeout);
    });
    try {
      return await Promise.race([work, silent]);
    } catch (error) {
      throw failure(error, this.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}
