import { broken, failure } from './client-error.ts';
import { onSilentWake, wakeTime } from './wake.ts';

/** The longest delay of a timer; with a longer one it would fire at once. */
const maxDelay = 2 ** 31 - 1;

/** Aborts a connection that is dead without an error, for example after a laptop slept or a router lost its state. */
export class IdleTimeout {
  readonly #expired = new AbortController();
  readonly #milliseconds: number;
  /** Ends the current wait. */
  #expire: ((milliseconds: number) => void) | undefined;
  /** The signal of the connection: fires with the outer signal, or after the time-out. */
  readonly signal: AbortSignal;

  /** `milliseconds` may be Infinity. */
  constructor(milliseconds: number, outer?: AbortSignal) {
    // Not with one signal for all that have no outer one: on Node 20, `any` leaves an entry with its sources for good.
    this.signal = outer === undefined ? this.#expired.signal : AbortSignal.any([outer, this.#expired.signal]);
    this.#milliseconds = Math.min(milliseconds, maxDelay);
  }

  /** Waits for the server; the signal ends the wait. The time that the reader of a stream takes does not count. */
  async race<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const expiry = new Promise<never>((_resolve, reject) => {
      this.#expire = (milliseconds) => {
        const error = broken('silent', `The server sent nothing for ${milliseconds} ms.`);
        this.#expired.abort(error);
        reject(error);
      };
      timer = setTimeout(this.#expire, this.#milliseconds, this.#milliseconds);
    });
    try {
      return await Promise.race([work, expiry]);
    } catch (error) {
      throw failure(error, this.signal);
    } finally {
      clearTimeout(timer);
      this.#expire = undefined;
    }
  }

  /** When the page is back, a wait that goes on for longer than a moment is over. Returns an unsubscribe function. */
  expireAfterWake(): () => void {
    return onSilentWake(
      () => this.#expire,
      () => this.#expire?.(wakeTime),
    );
  }
}

/**
 * Reads a body chunk by chunk. A chunk is read only when it is asked for. Leaving the loop closes the connection.
 * @throws ClientError of the time-out or the connection
 */
export async function* readChunks(
  body: ReadableStream<Uint8Array>,
  idleTimeout: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await idleTimeout.race(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // It rejects with the connection's error, which was thrown already.
    reader.cancel().catch(() => {});
  }
}
