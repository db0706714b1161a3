import type { RunStatus } from '../schema/run.ts';
import { runStatuses } from '../schema/statuses.ts';

/** The allowed transitions of a run's status. */
export const transitions: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  created: ['in-progress', 'failed', 'cancelling'],
  'in-progress': ['completed', 'failed', 'awaiting', 'cancelling'],
  awaiting: ['in-progress', 'failed', 'cancelling'],
  cancelling: ['cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
};

export const canBecome = (from: RunStatus, to: RunStatus): boolean => transitions[from].includes(to);

/** No status follows: completed, failed and cancelled. */
export const finalStatuses: readonly RunStatus[] = runStatuses.filter((status) => transitions[status].length === 0);
export const openStatuses: readonly RunStatus[] = runStatuses.filter((status) => transitions[status].length > 0);

export const isFinal = (status: RunStatus): boolean => finalStatuses.includes(status);

/** Final or awaiting: a request in sync mode gets its response. */
export const isSettled = (status: RunStatus): boolean => status === 'awaiting' || isFinal(status);
