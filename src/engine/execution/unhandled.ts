import { config } from 'rxjs';

/** For each error that an agent was given, the function that reports it if no observer handles it. */
const reports = new WeakMap<object, (error: unknown) => void>();
let installed: ((error: unknown) => void) | undefined;

/**
 * Makes an error safe to give to an agent. RxJS throws an error that a subscriber without an error handler gets, and that
 * ends the process. Such an error is reported instead; all other errors are treated as before.
 */
export function reported<E extends Error>(error: E, report: (error: unknown) => void): E {
  reports.set(error, report);
  if (installed === undefined || config.onUnhandledError !== installed) {
    const before = config.onUnhandledError;
    installed = (unhandled) => {
      const known = typeof unhandled === 'object' && unhandled !== null ? reports.get(unhandled) : undefined;
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
