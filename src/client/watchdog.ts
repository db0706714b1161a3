import { broken, failure } from './client-error.ts';

/** A timer takes no more, and would fire at once. */
const longest = 2 ** 31 - 1;

/** Ends a connection that is dead without an error: after a laptop slept, or a router lost its state. */
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

  /** Waits for work; the signal ends it as well. Only waiting is timed: a slow reader has not lost the connection. */
  async inTime<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silent = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = broken('silent', `Nothing came for ${this.#silence} ms.`);
        this.#silent.abort(error);
        reject(error);
      }, this.#silence);
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
