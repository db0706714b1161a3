import { fail, RivuletError } from '../core/errors.ts';
import type { Outcome, Store, Write } from '../core/store.ts';
import { delay, within as inTime } from '../core/timing.ts';

/**
 * A store as requests use it: where it fails, or does not answer for so many milliseconds, the request fails with
 * `store_unavailable`, which has the store's own error as its cause. A client is then asked to come again, and an open stream
 * waits. A commit that was given up may be taken all the same, later.
 */
export function storeForRequests(store: Store, requestTimeout: number): Store {
  return wrapCalls(store, (ask) => orUnavailable(ask(), requestTimeout));
}

/** Milliseconds between two questions to a store that fails. */
const pause = 500;

/**
 * A store as agents use it: what they ask while it fails is asked again, for so many milliseconds at most.
 */
export const storeForAgents = (store: Store, storeTimeout: number): Store =>
  wrapCalls(store, async (ask) => {
    try {
      return await retry(storeTimeout, ask, () => true);
    } catch (cause) {
      throw unavailable(cause);
    }
  });

/** Does what fails with `store_unavailable` again until the store is back, for so many milliseconds at most. */
export const retryUntilAvailable = <T>(storeTimeout: number, work: () => Promise<T>): Promise<T> =>
  retry(storeTimeout, work, (error) => error instanceof RivuletError && error.kind === 'store_unavailable');

async function retry<T>(time: number, work: () => Promise<T>, passes: (error: unknown) => boolean): Promise<T> {
  for (const until = performance.now() + time; ; ) {
    try {
      return await work();
    } catch (error) {
      if (!passes(error) || performance.now() > until) throw error;
      await delay(pause);
    }
  }
}

function wrapCalls(store: Store, how: (ask: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const asks = name !== 'close' && name !== 'watch';
      return (...args: unknown[]): unknown => {
        const ask = async (): Promise<unknown> => Reflect.apply(value, target, args);
        return asks ? how(ask) : ask();
      };
    },
  });
}

/** Commits one write. `taken` is called when it was taken, also where that is too late for the answer. */
export type CommitOne = (write: Write, taken: () => void) => Promise<Outcome>;

/**
 * For writes of runs that no execution here has. What follows from such a write (the run is offered, its readers are
 * woken) has to follow whenever it was taken; who asked for it waits `requestTimeout` ms. Rejects `store_unavailable`.
 */
export const createCommitOne =
  (store: Store, requestTimeout: number): CommitOne =>
  (write, taken) => {
    const answer = async (): Promise<Outcome> => {
      const [outcome = 'fenced'] = await store.commit([write]);
      if (outcome === 'taken') taken();
      return outcome;
    };
    return orUnavailable(answer(), requestTimeout);
  };

/** What a promise answers, or `store_unavailable` when it rejects with an error that is not ours, or the time is over. */
export const orUnavailable = <T>(answer: Promise<T>, requestTimeout: number): Promise<T> =>
  inTime(requestTimeout, answer).catch((cause: unknown) => {
    throw cause instanceof RivuletError ? cause : unavailable(cause);
  });

function unavailable(cause: unknown): RivuletError {
  const error = fail('store_unavailable');
  error.cause = cause;
  return error;
}
