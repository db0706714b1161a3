import type { Batch, RunRow } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Tail } from './tail.ts';

/** Where a cursor reads: the log of a live run, or the store for a run that this process does not execute. */
export interface Source {
  readonly run_id: string;
  readonly on_disconnect: RunRow['on_disconnect'];
  /** The id of the last event that readers may see. */
  readonly durable: number;
  /** The id of the last run event, which may not be durable yet. No durable event after it settles the run. */
  readonly snapshot: number;
  /** Whether no event follows the durable ones. */
  readonly final: boolean;
  /** The log's readers, while it grows in this process; undefined where the run's row has to be read again. */
  readonly readers: Readers | undefined;
  /**
   * The batch with the event after an id, if it is in memory; undefined where the store has to be read. An event that
   * settles the run is the last of its batch.
   */
  batchInMemory(id: number): Batch | undefined;
}

/** The readers that a log wakes when it has grown or ended. */
export type Readers = Pick<Tail, 'add' | 'remove'>;

/** How a cursor finds the run that it reads. */
export interface RunFinder {
  /** `seen` is the id of the last event that the reader has: a log that ends before it is out of date. */
  find(run_id: string, seen?: number): Promise<Source>;
  /**
   * Calls back when the run may have changed in another process or moved to one, and when the server stops. Returns an
   * unsubscribe function.
   */
  onChange(run_id: string, callback: () => void): () => void;
  readonly stopping: boolean;
}

/** A run that is not in memory, as of the time when its row was read. */
export const storedSource = ({ run_id, on_disconnect, last, snapshot, status }: RunRow): Source => ({
  run_id,
  on_disconnect,
  durable: last,
  snapshot,
  final: isFinal(status),
  readers: undefined,
  batchInMemory: () => undefined,
});
