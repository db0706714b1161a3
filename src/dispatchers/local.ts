import type { Dispatcher, Execute, Lease } from '../core/dispatcher.ts';

const lease: Lease = { rest: () => {}, wake: () => {} };

/** One process executes all there is, at once. */
export class LocalDispatcher implements Dispatcher {
  readonly shared = false;
  #execute: Execute | undefined;

  async offer(run_ids: readonly string[]): Promise<void> {
    for (const run_id of run_ids) void this.#execute?.(run_id, lease);
  }

  async start(execute: Execute): Promise<void> {
    this.#execute = execute;
  }

  async pause(): Promise<void> {
    this.#execute = undefined;
  }

  async close(): Promise<void> {}
}
