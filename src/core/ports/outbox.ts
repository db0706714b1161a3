import type { DeliveryState } from '../../schema/webhook.ts';

/** A webhook that a run sends to a URL. It is in the outbox from the change that it reports until a sweep removes it. */
export interface Delivery {
  /** The same in all attempts. A UUID of version 7: lists are ordered by it. */
  readonly delivery_id: string;
  readonly run_id: string;
  /** The run's owner. */
  readonly owner: string | null;
  readonly url: string;
  /** The id of the run's target, whose headers it is sent with; null for the run's own webhook. */
  readonly target: string | null;
  readonly type: string;
  readonly body: string;
  readonly created_at: string;
  /** `failed`: there are no more attempts. */
  readonly state: DeliveryState;
  /** The number of attempts that have ended. */
  readonly attempt: number;
  /** When the next attempt is due, or when the last one was. */
  readonly next_at: string;
  /** Until this time it belongs to the node that has claimed it; null where no attempt is under way. */
  readonly claimed_until: string | null;
  /** The status and the error of the last attempt. */
  readonly last_status: number | null;
  readonly last_error: string | null;
}

/** What a write adds to the outbox. The first attempt is due at `created_at`. */
export type NewDelivery = Pick<Delivery, 'delivery_id' | 'url' | 'target' | 'type' | 'body' | 'created_at'>;

/**
 * The end of a claim: of an attempt that ended at `attempted_at`, or without one, where that is null. A `pending`
 * delivery is due again at `next_at`.
 */
export type DeliveryResult = {
  readonly attempted_at: string | null;
  readonly status: number | null;
  readonly error: string | null;
} & ({ readonly state: 'delivered' | 'failed' } | { readonly state: 'pending'; readonly next_at: string });

/** The attempts to a URL that have failed since the last one that did not. */
export interface UrlFailures {
  readonly attempts: number;
  /** When the first and the last of them ended. */
  readonly since: string;
  readonly last_at: string;
}

export interface DeliveryFilter {
  readonly run_id?: string;
  readonly owner?: string;
  readonly state?: DeliveryState;
}

/** The deliveries that are pending. */
export interface PendingDeliveries {
  readonly count: number;
  /** The id of the oldest one; ids carry the time at which they were made. Null where none is pending. */
  readonly oldest: string | null;
}

/**
 * The deliveries of a store. Writes add to it: see `Write.deliveries`. The deliveries of one run to one
 * URL form a line: a delivery is claimed when no earlier one of its line is pending. So the receiver gets them in order,
 * and a URL that fails delays no other.
 */
export interface Outbox {
  /**
   * Claims deliveries that are due, for attempts of this node, the one that is due first at first. Until the time
   * `until` no other call returns them. After that, another call does, where no result was recorded. A store that belongs
   * to one process ends all claims when it is opened.
   */
  claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]>;
  /**
   * Records the result of an attempt, for the delivery and for the failures of its URL. Returns false, and changes nothing, where the claim is over, because the delivery
   * was claimed again or removed.
   */
  finishDelivery(claim: Delivery, result: DeliveryResult): Promise<boolean>;
  delivery(delivery_id: string): Promise<Delivery | undefined>;
  /** Deliveries, newest first; only those with a smaller id than `before`, if it is given. */
  deliveries(filter: DeliveryFilter, before: string | undefined, limit: number): Promise<Delivery[]>;
  /** The pending deliveries, counted up to `limit`, at least 1: after a long outage there are many. A part of the store that
   * does not answer is left out: see `Partitions`. */
  pendingDeliveries(limit: number): Promise<PendingDeliveries>;
  /**
   * The failures of the deliveries of an owner to a URL, until one succeeds or is replayed, or a sweep removes them.
   * Undefined without any.
   */
  urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined>;
  /**
   * Makes a delivery that is not pending due at a time, with all its attempts, at the end of its line, and forgets the
   * failures of its URL. Returns false, and changes nothing, where it is pending or unknown.
   */
  replayDelivery(delivery_id: string, now: string): Promise<boolean>;
}

/** A delivery as a write adds it. */
export const newDelivery = (
  { delivery_id, url, target, type, body, created_at }: NewDelivery,
  { run_id, owner }: Pick<Delivery, 'run_id' | 'owner'>,
): Delivery => ({
  delivery_id,
  run_id,
  owner,
  url,
  target,
  type,
  body,
  created_at,
  state: 'pending',
  attempt: 0,
  next_at: created_at,
  claimed_until: null,
  last_status: null,
  last_error: null,
});

/** A delivery after an attempt. */
export const finishedDelivery = (before: Delivery, result: DeliveryResult): Delivery => ({
  ...before,
  state: result.state,
  attempt: before.attempt + (result.attempted_at === null ? 0 : 1),
  next_at: result.state === 'pending' ? result.next_at : before.next_at,
  claimed_until: null,
  last_status: result.status,
  last_error: result.error,
});

/** The failures of a URL after another one, which ended at a time. */
export const addFailure = (before: UrlFailures | undefined, at: string): UrlFailures => ({
  attempts: (before?.attempts ?? 0) + 1,
  since: before?.since ?? at,
  last_at: before !== undefined && before.last_at > at ? before.last_at : at,
});

/** A delivery that is to be sent again. */
export const replayedDelivery = (before: Delivery, now: string): Delivery => ({
  ...before,
  state: 'pending',
  attempt: 0,
  next_at: now,
});
