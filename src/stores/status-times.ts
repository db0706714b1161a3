import { compareText } from '../core/collections.ts';
import type { StatusFilter, StatusPosition } from '../core/ports/run-lists.ts';
import type { RunRow, WrittenRow } from '../core/ports/run-store.ts';
import type { RunStatus } from '../schema/run.ts';
import { runStatuses } from '../schema/statuses.ts';

/** The order of lists by the time of the status, oldest first. */
export const compareStatusTimes = (a: StatusPosition, b: StatusPosition): number =>
  compareText(a.status_at, b.status_at) || compareText(a.run_id, b.run_id);

/** A page of rows in any order: the newest of those after a position. */
export const newestStatuses = (rows: readonly RunRow[], after: StatusPosition | undefined, limit: number): RunRow[] =>
  rows
    .filter((row) => after === undefined || compareStatusTimes(row, after) < 0)
    .sort((a, b) => compareStatusTimes(b, a))
    .slice(0, limit);

/** The ranges that a list without a session has: one for each agent and status. */
export const rangesOf = (
  agent_names: readonly string[],
  statuses: readonly RunStatus[] = runStatuses,
): [agent: string, status: RunStatus][] =>
  agent_names.flatMap((agent) => statuses.map((status): [string, RunStatus] => [agent, status]));

/** Whether a list has a run. */
export const matchesStatus = (
  row: WrittenRow,
  { agent_names, session_id, owner, statuses = runStatuses, since = '' }: StatusFilter,
): boolean =>
  (agent_names === undefined || agent_names.includes(row.agent_name)) &&
  (session_id === undefined || row.session_id === session_id) &&
  (owner === undefined || row.owner === owner) &&
  statuses.includes(row.status) &&
  row.status_at >= since;
