import { config } from 'rxjs';

/** What is done with an error that the agent was given, and that no observer of its handles. */
const reports = new WeakMap<object, (error: unknown) => void>();
let installed: ((error: unknown) => void) | undefined;

/**
 * Makes an error safe to give to an agent. RxJS throws an error that a subscriber without an error handler gets, and that
 * ends the process; this one is reported instead. All other errors go the way that they went before.
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

/** The report of an error that only says that the run is over. */
export const ignored = (): void => {};
