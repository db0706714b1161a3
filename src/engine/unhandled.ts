import { config } from 'rxjs';

/** For each error that an agent was given, the function that reports it if no observer handles it. */
const reports = new WeakMap<object, (error: unknown) => void>();
let installed: ((error: unknown) => void) | undefined;

const reportOf = (error: unknown) => (typeof error === 'object' && error !== null ? reports.get(error) : undefined);

/** Whether an error that no code handled was made safe, so that it needs no other treatment. */
export const isReported = (error: unknown): boolean => reportOf(error) !== undefined;

function onRejection(reason: unknown): void {
  const report = reportOf(reason);
  if (report !== undefined) report(reason);
  // Node does so where no listener is installed.
  else if (process.listenerCount('unhandledRejection') === 1) throw reason;
}

/**
 * Makes an error safe to give to an agent. RxJS throws an error that a subscriber without an error handler gets, and Node
 * throws the error of a promise without one. Both end the process. Such an error is reported instead; all other errors
 * are treated as before.
 */
export function reported<E extends Error>(error: E, report: (error: unknown) => void): E {
  if (!process.listeners('unhandledRejection').includes(onRejection)) process.on('unhandledRejection', onRejection);
  reports.set(error, report);
  if (installed === undefined || config.onUnhandledError !== installed) {
    const before = config.onUnhandledError;
    installed = (unhandled) => {
      const known = reportOf(unhandled);
      if (known !== undefined) known(unhandled);
      else if (before !== null) before(unhandled);
      else throw unhandled;
    };
    config.onUnhandledError = installed;
  }
  return error;
}

/** For errors that only say that the run is final. */
export const ignored = (): void => {};

/** A promise whose rejection is no event of the process where it only says that the run is final. */
export function quiet<T>(promise: Promise<T>, source: Promise<unknown>): Promise<T> {
  source.catch((error: unknown) => {
    if (reportOf(error) === ignored) promise.catch(ignored);
  });
  return promise;
}

/**
 * Calls into code of the agent that must not keep what follows from being done, such as a teardown. RxJS throws what a
 * teardown throws out of `unsubscribe` and `error`.
 */
export function guarded(call: () => void, report: (error: unknown) => void): void {
  try {
    call();
  } catch (error) {
    report(error);
  }
}
