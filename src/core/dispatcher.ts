/** The lease of the process that executes a run: as long as that process lives, no other one gets the run. */
export interface Lease {
  /** The run awaits: it stays in this process, but takes no slot. */
  rest(): void;
  /** The run works again. It takes a slot even if none is free, because its agent is in memory. */
  wake(): void;
}

/**
 * Executes a run; resolves when the run has left this process, for whatever reason: `ended` where it is final, so that no
 * process has to execute it any more. Never rejects.
 */
export type Execute = (run_id: string, lease: Lease) => Promise<'ended' | 'left'>;

/**
 * Called when a run has left this process. While the run executed here, the dispatcher ignored offers of it. So the
 * engine now reads the run, and offers it if it still has to be executed. Never rejects. A shared dispatcher calls it for
 * each run that it has executed, except for those that have `ended`.
 */
export type Released = (run_id: string) => Promise<void>;

/**
 * Decides which process executes a run. It carries only the run's id: the run is in the store, which fences a second
 * execution of it.
 */
export interface Dispatcher {
  /** Whether other processes execute runs of the same store. */
  readonly shared: boolean;
  /**
   * Enqueues runs, which have to be in the store. A run that is queued already, or executing, is left alone. Rejects
   * within seconds where the offer failed; the run may have been queued all the same.
   */
  offer(run_ids: readonly string[]): Promise<void>;
  /** From now on, this process executes runs that are offered. A process that only offers runs does not call it. */
  start(execute: Execute, onReleased: Released): Promise<void>;
  /** Rejects where runs that are offered would not be executed, as behind a pooler that drops notifications. */
  check?(): Promise<void>;
  /** Stops taking runs from the queue. */
  pause(): Promise<void>;
  /** Call it after `pause`. Resolves when all runs have left this process; until then, runs may be offered. */
  close(): Promise<void>;
}
