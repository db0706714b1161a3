import type { Dispatcher, Execute, Lease } from '../core/dispatcher.ts';

const done = Promise.resolve();

/** Without slots: the engine checks its limit of runs before it creates one. */
const lease: Lease = { rest() {}, wake() {} };

/**
 * The dispatcher of a store that one process uses. It executes each offered run here and at once; the call returns
 * when the run first waits. No other node can have offered a run that executes here, so `onReleased` is never called.
 */
export class LocalDispatcher implements Dispatcher {
  readonly shared = false;
  #execute: Execute | undefined;

  offer(run_ids: readonly string[]): Promise<void> {
    for (const run_id of run_ids) void this.#execute?.(run_id, lease);
    return done;
  }

  start(execute: Execute): Promise<void> {
    this.#execute = execute;
    return done;
  }

  /** Runs that are created while the server stops still begin, and execute for the time that remains. */
  pause(): Promise<void> {
    return done;
  }

  close(): Promise<void> {
    return done;
  }
}
