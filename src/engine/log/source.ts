import { isFinal } from '../../core/run-state.ts';
import type { Batch, RunRow } from '../../core/store.ts';
import type { Reader } from './tail.ts';

/** Where a cursor reads: the log of a live run, or what the store has of one that this process does not execute. */
export interface Source {
  readonly run_id: string;
  /** Id of the last event that readers may see. */
  readonly durable: number;
  /** Whether no event follows the durable ones. */
  readonly final: boolean;
  /** The log's readers, while it grows in this process; undefined where the run has to be looked up again. */
  readonly readers: Readers | undefined;
  /** The events after an id that are in memory; undefined where the store has to be asked. */
  eventsInMemory(id: number): readonly Batch[] | undefined;
}

/** Those who are woken when a log has grown, moved or failed. */
export interface Readers {
  add(reader: Reader): void;
  remove(reader: Reader): void;
}

/** How runs are found by those who read them. */
export interface RunFinder {
  /** `seen` is the id of the last event that the reader has: a log that does not reach it is not the newest. */
  find(run_id: string, seen?: number): Promise<Source>;
  /** Calls back whenever a run may have changed hands or got on elsewhere, and when the server stops. */
  onChange(run_id: string, callback: () => void): () => void;
  readonly stopping: boolean;
}

/** A run as its row says, at the time when it was read. */
export const storedSource = ({ run_id, last, status }: RunRow): Source => ({
  run_id,
  durable: last,
  final: isFinal(status),
  readers: undefined,
  eventsInMemory: () => undefined,
});
