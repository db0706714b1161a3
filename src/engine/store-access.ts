import { fail, RivuletError } from '../core/errors.ts';
import type { Outcome, Store, TargetsChanged, Write } from '../core/store.ts';
import { giveWay, within as inTime, retry } from '../core/timing.ts';

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
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const wrapped = name !== 'close' && name !== 'watch';
      return (...args: unknown[]): unknown => {
        const call = async (): Promise<unknown> => Reflect.apply(value, target, args);
        if (!wrapped) return call();
        const nextTurn = giveWay();
        return nextTurn === undefined ? wrap(call) : nextTurn.then(() => wrap(call));
      };
    },
  });
}

/** Is told of each commit of an engine. Never throws. */
export interface CommitObserver {
  /** The store has answered with these outcomes, after so many milliseconds. */
  onCommitted(writes: readonly Write[], outcomes: readonly Outcome[], milliseconds: number): void;
  /** The store has failed. The commit is repeated, or its request gets an error. */
  onCommitFailed(): void;
}

/** What the store says of one write in the end. */
type FinalOutcome = Exclude<Outcome, TargetsChanged>;

/** Commits one write. Calls `onTaken` if it is taken, even if that happens after the promise has rejected. */
export type CommitOne = (write: Write, onTaken: () => void) => Promise<FinalOutcome>;

/**
 * For writes of runs without an execution in this process. The consequences of such a write (the run is offered, its
 * readers are woken) follow whenever it is taken, but the caller waits for at most `requestTimeout` milliseconds.
 * Rejects `store_unavailable`.
 */
export const createCommitOne =
  (store: Pick<Store, 'commit'>, requestTimeout: number, observer: CommitObserver): CommitOne =>
  (write, onTaken) => {
    const commit = async (): Promise<FinalOutcome> => {
      for (let next = write; ; ) {
        const began = performance.now();
        let outcomes: Outcome[];
        try {
          outcomes = await store.commit([next]);
        } catch (error) {
          observer.onCommitFailed();
          throw error;
        }
        const [outcome = 'fenced'] = outcomes;
        observer.onCommitted([next], outcomes, performance.now() - began);
        if (outcome === 'taken') onTaken();
        if (typeof outcome !== 'object' || 'rejected' in outcome) return outcome;
        // Each further attempt means that another request has changed them meanwhile.
        next = withTargets(next, outcome);
      }
    };
    return orUnavailable(commit(), requestTimeout);
  };

/** A write that was refused for its targets, with those that the run has. */
export const withTargets = (write: Write, { targets }: TargetsChanged): Write => ({
  ...write,
  row: { ...write.row, targets },
});

/** Rejects with `store_unavailable` where a promise takes too long, or rejects with an error of the store. */
export const orUnavailable = <T>(answer: Promise<T>, requestTimeout: number): Promise<T> =>
  inTime(requestTimeout, answer, (cause) => (cause instanceof RivuletError ? cause : unavailable(cause)));

const unavailable = (cause: unknown): RivuletError => Object.assign(fail('store_unavailable'), { cause });
