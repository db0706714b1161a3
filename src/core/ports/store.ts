import type { Outbox } from './outbox.ts';
import type { RunClaims } from './run-claims.ts';
import type { RunLists } from './run-lists.ts';
import type { RunStore } from './run-store.ts';
import type { SessionStore } from './session-store.ts';

/** `sweep` removes what is older than these times. It also clears the data of removed runs and sessions. */
export interface Cutoffs {
  /** Runs that ended before this time. */
  readonly runs?: string;
  /** Idempotency-Keys that were stored before this time. */
  readonly keys: string;
  /** Deliveries from before this time that are not pending, and failures of URLs without an attempt since. */
  readonly deliveries?: string;
  /** Sessions without runs, with no write since this time. */
  readonly sessions?: string;
}

/**
 * The parts of a store that fail apart from each other, such as the servers of a cluster. A session, its runs, and
 * all that they have are in one part, which the last four digits of their ids decide: so an id alone leads to it.
 */
export interface Partitions {
  readonly count: number;
  /** The number of the part, from 0 on, of the run, the session or the resource that an id belongs to. */
  of(id: string): number;
  /** Whether a part answers, as far as is known: its last call was answered, and soon. */
  answers(part: number): boolean;
}

/**
 * The port of durable stores: several parts over the same data, so that one commit changes all of them. Every store passes
 * `test/stores/contract.ts`. Methods reject with the store's own errors, which the engine interprets.
 */
export interface Store extends RunStore, SessionStore, RunLists {
  readonly outbox: Outbox;
  /** Only a store that several processes share has it, beside `watch`. */
  readonly claims?: RunClaims;
  /** Only a store that has several. The writes of one commit then belong to one of them. */
  readonly partitions?: Partitions;
  /**
   * Removes what an owner has beside its sessions and their runs: its idempotency keys, figures, deliveries and failures
   * of URLs. Called after its sessions were removed, since a store may then also overwrite what it has freed.
   */
  removeOwner(owner: string): Promise<void>;
  /** Removes some of the expired data, in a few milliseconds at most. Returns whether there is more. */
  sweep(before: Cutoffs): Promise<boolean>;
  close(): Promise<void>;
}
