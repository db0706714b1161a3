import { fail, RivuletError } from '../../core/errors.ts';
import type { TargetsChanged, Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { giveWay, within as inTime, retry } from '../../core/timing.ts';

/**
 * A store for HTTP requests: a call that fails, or takes longer than `requestTimeout` milliseconds, rejects with
 * `store_unavailable`, which has the store's own error as its cause. Clients are then told to retry, and open streams
 * wait. A commit that timed out may still be taken later.
 */
export function storeForRequests(store: Store, requestTimeout: number): Store {
  return wrapCalls(store, (call) => orUnavailable(call(), requestTimeout));
}

/** A store for agents: failed calls are retried for at most `storeTimeout` milliseconds, while there may be agents. */
export const storeForAgents = (store: Store, storeTimeout: number, goesOn: () => boolean): Store =>
  wrapCalls(store, async (call) => {
    try {
      return await retry(call, { again: whileInTime(storeTimeout, goesOn) });
    } catch (cause) {
      throw unavailable(cause);
    }
  });

/** Retries work that fails with `store_unavailable`, for at most `storeTimeout` milliseconds. */
export const retryUntilAvailable = <T>(storeTimeout: number, work: () => Promise<T>): Promise<T> =>
  retry(work, { again: whileInTime(storeTimeout, isUnavailable) });

/** Retries work that this process owes, while it fails with `store_unavailable` and `goesOn` returns true. */
export const retryOwed = <T>(goesOn: () => boolean, work: () => Promise<T>): Promise<T> =>
  retry(work, { again: (error) => isUnavailable(error) && goesOn() });

/** Whether an error says that the store is unavailable. */
export const isUnavailable = (error: unknown): error is RivuletError =>
  error instanceof RivuletError && error.kind === 'store_unavailable';

function whileInTime(milliseconds: number, isTransient: (error: unknown) => boolean = () => true) {
  const until = performance.now() + milliseconds;
  return (error: unknown): boolean => isTransient(error) && performance.now() <= until;
}

/**
 * A store in this process answers in microtasks, so a loop over its answers would block the event loop until it ends. Each
 * call gives way first, where the turn is long. So no such loop has to: between two calls, it handles one page.
 */
function wrapCalls(store: Store, wrap: (call: () => Promise<unknown>) => Promise<unknown>): Store {
  const wrapped = <Part extends object>(part: Part, others: Partial<Part> = {}): Part =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(name in others ? others : target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          const call = async (): Promise<unknown> => Reflect.apply(value, target, args);
          if (name === 'close' || name === 'watch') return call();
          const nextTurn = giveWay();
          return nextTurn === undefined ? wrap(call) : nextTurn.then(() => wrap(call));
        };
      },
    });
  return wrapped(store, { outbox: wrapped(store.outbox) });
}

/** A write that was refused for its targets, with those that the run has. */
export const withTargets = <W extends Write>(write: W, { targets }: TargetsChanged): W => ({
  ...write,
  row: { ...write.row, targets },
});

/** Rejects with `store_unavailable` where a promise takes too long, or rejects with an error of the store. */
export const orUnavailable = <T>(answer: Promise<T>, requestTimeout: number): Promise<T> =>
  inTime(requestTimeout, answer, (cause) => (cause instanceof RivuletError ? cause : unavailable(cause)));

const unavailable = (cause: unknown): RivuletError => Object.assign(fail('store_unavailable'), { cause });
