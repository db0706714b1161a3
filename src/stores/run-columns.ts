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

/** Those of them that a run's life changes. */
export const changing = [
  'epoch',
  'status',
  'finished_at',
  'attempts',
  'queued_at',
  'due',
  'last',
  'snapshot',
] as const satisfies readonly (keyof RunRow)[];

/** A row's values of some columns. */
export const valuesOf = (row: RunRow, some: readonly (keyof RunRow)[]): RunRow[keyof RunRow][] =>
  some.map((one) => row[one]);

/** All of them, as SQL has them. */
export const list = columns.join(', ');
