import type { Delivery } from '../core/ports/outbox.ts';

/** The columns of a delivery in a database, in this order. */
export const deliveryColumns = [
  'delivery_id',
  'run_id',
  'owner',
  'url',
  'target',
  'type',
  'body',
  'created_at',
  'state',
  'attempt',
  'next_at',
  'claimed_until',
  'last_status',
  'last_error',
] as const satisfies readonly (keyof Delivery)[];

/** All columns, as an SQL list. */
export const deliveryColumnList = deliveryColumns.join(', ');
