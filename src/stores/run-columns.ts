import type { RunRow } from '../core/store.ts';

/** What a database keeps of a run's row, in this order. */
export const columns = [
  'run_id',
  'agent_name',
  'session_id',
  'owner',
  'epoch',
  'status',
  'created_at',
  'finished_at',
  'tier',
  'attempts',
  'queued_at',
  'due',
  'on_disconnect',
  'last',
  'snapshot',
] as const satisfies readonly (keyof RunRow)[];

/** The same, as SQL has them. */
export const list = columns.join(', ');
