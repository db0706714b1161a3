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
 * The port of durable stores: four parts over the same data, so that one commit changes all of them. Every store passes
 * `test/stores/contract.ts`. Methods reject with the store's own errors, which the engine interprets.
 */
export interface Store extends RunStore, SessionStore, RunLists, Outbox {
  /** Only a store that several processes share has it, beside `watch`. */
  readonly claims?: RunClaims;
  /**
   * Removes what an owner has beside its sessions and their runs: its idempotency keys, figures, deliveries and failures
   * of URLs. Called after its sessions were removed, since a store may then also overwrite what it has freed.
   */
  removeOwner(owner: string): Promise<void>;
  /** Removes some of the expired data, in a few milliseconds at most. Returns whether there is more. */
  sweep(before: Cutoffs): Promise<boolean>;
  close(): Promise<void>;
}
