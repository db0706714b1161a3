import { isFinal } from '../run-state.ts';
import { forwardsOnly, type Write, type WrittenRow } from './run-store.ts';

/**
 * Which node executes each run of a store that several processes share. A node has a lease. When the lease has ended by the
 * clock of the store's server, the node counts as dead. The first node that claims the runs of a dead node, or runs without a
 * node, gets them. A claim need not be exact: the epoch of a run keeps a second execution from writing.
 */
export interface RunClaims {
  /**
   * Begins the lease of a node, or renews it: it ends after so many milliseconds. Resolves to true where a part of the store
   * answers again: it may have given runs to the node in answers that were lost.
   */
  renewLease(node: string, milliseconds: number): Promise<boolean>;
  /**
   * Since when a node has had its lease in the part of a run: milliseconds of `performance.now`. Undefined while that lease
   * may have ended. Only a store has it whose parts have leases of their own.
   */
  leasedSince?(node: string, run_id: string): number | undefined;
  /** Ends the lease of a node that has stopped: other nodes may claim what it still has. */
  endLease(node: string): Promise<void>;
  /**
   * Gives a node at most `limit` runs that have no node or a dead one, the oldest of a partition first. A run that needs its agent is given
   * only to a node that has it: `agents` are the names of its agents. Resolves to the ids of the runs.
   */
  claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]>;
  /** Gives a node some runs by their ids, without those that are final or that another living node has. Resolves to the ids. */
  takeRuns(node: string, run_ids: readonly string[]): Promise<string[]>;
  /** The ids of at most `limit` runs that a node has, in order, from the first one after an id on. */
  heldRuns(node: string, after: string, limit: number): Promise<string[]>;
  /** Takes some runs from a node, so that they have none. Runs that another node has by now stay there. */
  freeRuns(node: string, run_ids: readonly string[]): Promise<void>;
}

/** Whether a run needs a process that executes it, or ends it. A run that awaits may have other work, unless it rests. */
export const needsExecution = ({ status, queued_at, rests_at }: WrittenRow): boolean =>
  !isFinal(status) && rests_at === null && (status === 'cancelling' || queued_at === null);

/** Whether a run waits for a node after a write. Only a write that leaves the run without one has to be looked at. */
export const waitsAfter = ({ row, input, node }: Write): boolean =>
  (node === null || (input !== undefined && node === undefined)) && needsExecution(row);

/**
 * Whether every node is told of a write. Such a write leaves the run without a node, forwards something to the node that
 * executes the run, or takes the run from that node. Only nodes that follow the run are told of other writes: see `Watch`.
 */
export const isForAllNodes = (write: Write): boolean =>
  waitsAfter(write) || forwardsOnly(write) || (write.from !== undefined && write.from !== write.row.epoch);

/** Whether only a process with the agent of a run can do what it needs. Any process can end a run. */
export const needsAgent = ({ status, tier }: Pick<WrittenRow, 'status' | 'tier'>): boolean =>
  status !== 'cancelling' && (tier === 'durable' || status === 'created');
