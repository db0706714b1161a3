import type { Dispatcher, Execute, Lease, Settled } from '../core/dispatcher.ts';

const done = Promise.resolve();

/** There are no slots to give back: how many runs may work at once is asked before they are made. */
const lease: Lease = { rest() {}, wake() {} };

/** For a store of one process: what is offered is executed here and at once. */
export class LocalDispatcher implements Dispatcher {
  readonly shared = false;
  /** Runs in hand, and whether they were offered again meanwhile. */
  readonly #held = new Map<string, boolean>();
  /** What was offered before the start. */
  readonly #early = new Set<string>();
  #execute: Execute | undefined;
  #settled: Settled | undefined;
  #paused = false;
  #busy = 0;
  #idle: (() => void) | undefined;

  /** Executions begin within the call, up to where each waits first. */
  offer(run_ids: readonly string[]): Promise<void> {
    for (const run_id of run_ids) {
      if (this.#held.has(run_id)) this.#held.set(run_id, true);
      else if (this.#paused) continue;
      else if (this.#execute === undefined) this.#early.add(run_id);
      else this.#begin(run_id, this.#execute);
    }
    return done;
  }

  async start(execute: Execute, settled: Settled): Promise<void> {
    this.#execute = execute;
    this.#settled = settled;
    const early = [...this.#early];
    this.#early.clear();
    await this.offer(early);
  }

  async pause(): Promise<void> {
    this.#paused = true;
  }

  async close(): Promise<void> {
    if (this.#busy === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #begin(run_id: string, execute: Execute): void {
    this.#held.set(run_id, false);
    this.#busy += 1;
    const over = (): void => this.#over(run_id);
    execute(run_id, lease).then(over, over);
  }

  #over(run_id: string): void {
    const again = this.#held.get(run_id);
    this.#held.delete(run_id);
    const settling = again ? this.#settled?.(run_id) : undefined;
    const gone = (): void => this.#gone();
    if (settling === undefined) gone();
    else settling.then(gone, gone);
  }

  #gone(): void {
    this.#busy -= 1;
    if (this.#busy === 0) this.#idle?.();
  }
}
