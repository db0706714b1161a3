import type { Dispatcher, Execute, Lease } from '../core/dispatcher.ts';

const done = Promise.resolve();

/** There are no slots to give back: how many runs may work at once is asked before they are made. */
const lease: Lease = { rest() {}, wake() {} };

/**
 * For a store of one process: what is offered is executed here and at once, within the call up to where it waits
 * first. Of a run in hand, nobody else can have been offered anything, so nothing has to be settled.
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

  /** What is being made while the server stops is begun all the same, and gets what time there is. */
  pause(): Promise<void> {
    return done;
  }

  close(): Promise<void> {
    return done;
  }
}
