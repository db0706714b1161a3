import type { LeaseHolder } from '../../core/ports/lease.ts';

/** A slot that is kept for a run which this process is about to create. */
export interface Place {
  /** The run is in the store: it is executed here. */
  begin(run_id: string): void;
  /** The run is not executed after all. May be called again. */
  drop(): void;
}

/**
 * Executes a run. Resolves when the run has left this process: `freed` where the store has it as final or without a node, and
 * `owned` where it may still be this node's. Never rejects.
 */
export type Execute = (run_id: string) => Promise<'freed' | 'owned'>;

/** Decides which runs this process executes. The store fences a second execution of a run. */
export interface Dispatcher extends LeaseHolder {
  /** Whether other processes execute runs of the same store. */
  readonly shared: boolean;
  /**
   * From now on, this process executes runs. A process that executes none never calls it. `withoutSlot` returns how many of the
   * runs that are executed here take no slot.
   */
  start(execute: Execute, withoutSlot: () => number): Promise<void>;
  /** Keeps a slot for a new run. Undefined where this process has none: the run then waits in the store. */
  reserve(): Place | undefined;
  /**
   * Executes runs of the store here, where they need it. A run stays where it is if another node has it, or if all slots are
   * taken. A run that executes here already is offered again when it has left.
   */
  offer(run_ids: readonly string[]): void;
  /** Some run waits in the store for a node. */
  onWaiting(): void;
  /** A slot may be free: a run that is executed here takes none any more, or has left. */
  onSlotFree(): void;
  /** Takes no more runs. */
  pause(): Promise<void>;
  /** Call it after `pause`. Resolves when all runs have left this process. */
  close(): Promise<void>;
}
