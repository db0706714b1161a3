/** What a process that executes a run holds of it: nobody else is given the run as long as the process lives. */
export interface Lease {
  /** The run awaits: it is still in this process's hands, but takes no slot. */
  rest(): void;
  /** The run works again, and counts even where no slot is free: its agent waits in memory. */
  wake(): void;
}

/** Executes a run; resolves when this process has let go of it, whatever became of it. Never rejects. */
export type Execute = (run_id: string, lease: Lease) => Promise<void>;

/**
 * Decides which process executes a run. What it carries is only the wish: the run is in the store, and an execution
 * that was dispatched twice is refused there.
 */
export interface Dispatcher {
  /** Whether other processes execute runs of the same store. */
  readonly shared: boolean;
  /**
   * A durable run needs somebody to execute it. To offer one that is offered already, or in somebody's hands,
   * changes nothing.
   */
  offer(run_ids: readonly string[]): Promise<void>;
  /**
   * From now on, this process executes runs that are offered. A dispatcher may offer without it. `settled` is called
   * when what was executed may be offered again: an offer that came before was for nothing, so it looks whether
   * there is still something to do.
   */
  start(execute: Execute, settled: (run_id: string) => Promise<void>): Promise<void>;
  /** Takes no more runs. */
  pause(): Promise<void>;
  /** After `pause`, and when all that was taken is let go of. */
  close(): Promise<void>;
}
