import type { RunFilter, StatusFilter } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import { rangesOf } from '../status-times.ts';
import type { RunValues } from './scripts.ts';

/** The smallest sorted set with all runs that match a filter. */
export function smallestSet({ agent_name, session_id, owner, status, parked }: RunFilter): string {
  if (parked !== undefined) return 'parked';
  if (session_id !== undefined) {
    return status === undefined || isFinal(status) ? `of:${session_id}` : `unfinished:${session_id}`;
  }
  if (owner !== undefined) return status === undefined ? `owner:${owner}` : `owner-status:${owner}:${status}`;
  if (agent_name !== undefined) {
    return status === undefined ? `agent:${agent_name}` : `agent-status:${agent_name}:${status}`;
  }
  return status === undefined ? 'runs' : `status:${status}`;
}

/** The sorted sets by the time of the status with all runs of some agents that match a filter without a session. */
export const statusSets = ({ owner, statuses }: StatusFilter, agent_names: readonly string[]): string[] =>
  rangesOf(agent_names, statuses).map(([agent, status]) => {
    const list = owner === undefined ? 'at:' : `at-of:${owner}:`;
    return `${list}${agent}:${status}`;
  });

/** Parses rows. Damaged ones are left out, because an error would hide all others. */
export function parseRows(found: readonly RunValues[]): RunRow[] {
  return found.flatMap(([row, last, targets, readers]) => {
    try {
      // Not spread: adding keys to a spread copy costs V8 ten times as much.
      // Rows of earlier builds have neither.
      return Object.assign({ rests_at: null, parked: null }, JSON.parse(row), { targets, readers, last: Number(last) });
    } catch {
      return [];
    }
  });
}
