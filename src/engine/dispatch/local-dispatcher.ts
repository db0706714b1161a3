import type { Dispatcher, Execute, Place } from './dispatcher.ts';

/**
 * The dispatcher of a store that one process uses: it executes each run here and at once. There is no number of slots: the
 * engine checks its limit of runs before it creates one.
 */
export class LocalDispatcher implements Dispatcher {
  readonly shared = false;
  readonly node = undefined;
  #execute: Execute | undefined;

  async start(execute: Execute): Promise<void> {
    this.#execute = execute;
  }

  leasedSince(): number {
    return 0;
  }

  async whenRenewed(): Promise<void> {}

  reserve(): Place {
    return { begin: (run_id) => this.offer([run_id]), drop() {} };
  }

  offer(run_ids: readonly string[]): void {
    for (const run_id of run_ids) void this.#execute?.(run_id);
  }

  onWaiting(): void {}

  onSlotFree(): void {}

  /** Runs that are created while the server stops still begin, and execute for the time that remains. */
  async pause(): Promise<void> {}

  async close(): Promise<void> {}
}
