import type { RunStatus } from '../schema/run.ts';

/** Which status may follow which; whatever is not here cannot happen. */
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

/** Over: nothing follows. */
export const isFinal = (status: RunStatus): boolean => transitions[status].length === 0;

/** Over, or waiting for an answer: a request in sync mode is answered now. */
export const isSettled = (status: RunStatus): boolean => status === 'awaiting' || isFinal(status);
