import type { RunRow } from '../core/ports/run-store.ts';
import { finalStatuses } from '../core/run-state.ts';

/** The columns of a run's row in a database, in this order. */
export const runColumns = [
  'run_id',
  'agent_name',
  'session_id',
  'owner',
  'principal',
  'targets',
  'readers',
  'trace',
  'epoch',
  'status',
  'status_at',
  'title',
  'created_at',
  'finished_at',
  'tier',
  'attempts',
  'queued_at',
  'due',
  'on_disconnect',
  'last',
  'snapshot',
  'rests_at',
  'parked',
] as const satisfies readonly (keyof RunRow)[];

/** The columns that writes change after the run was created. */
export const mutableColumns = [
  'trace',
  'epoch',
  'status',
  'status_at',
  'finished_at',
  'attempts',
  'queued_at',
  'due',
  'last',
  'snapshot',
  'rests_at',
  'parked',
] as const satisfies readonly (keyof RunRow)[];

/** The final statuses, as an SQL list. */
export const finalList = finalStatuses.map((status) => `'${status}'`).join(', ');

/** All columns, as an SQL list. */
export const columnList = runColumns.join(', ');
