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
 * A run that was executed here can be offered again from now on. An offer that was made while it was in this process's
 * hands has changed nothing, so whoever wants more of the run looks at it now, and offers it. Never rejects.
 * Not called where the dispatcher knows that there was no such offer.
 */
export type Released = (run_id: string) => Promise<void>;

/**
 * Decides which process executes a run. What it carries is only the wish: the run is in the store, and an execution
 * that was dispatched twice is refused there.
 */
export interface Dispatcher {
  /** Whether other processes execute runs of the same store. */
  readonly shared: boolean;
  /**
   * A durable run needs somebody to execute it. To offer one that is offered already, or in somebody's hands,
   * changes nothing. Rejects, after seconds at most, where it could not be offered: it may have been all the same.
   */
  offer(run_ids: readonly string[]): Promise<void>;
  /** From now on, this process executes runs that are offered. A dispatcher may offer without it. */
  start(execute: Execute, settled: Released): Promise<void>;
  /** Takes no more runs. */
  pause(): Promise<void>;
  /** After `pause`; resolves when all that was taken is let go of and settled. It may be offered until then. */
  close(): Promise<void>;
}
