/**
 * The statuses of a run: the one list. `transitions` has what may follow each. This file loads nothing, because the client for
 * browsers reads it.
 */
export const runStatuses = [
  'created',
  'in-progress',
  'awaiting',
  'cancelling',
  'cancelled',
  'completed',
  'failed',
] as const;

/** A status that an event of the log tells. A run that is being cancelled has no event for that. */
export type LoggedStatus = Exclude<(typeof runStatuses)[number], 'cancelling'>;

export const loggedStatuses: readonly LoggedStatus[] = runStatuses.filter((status) => status !== 'cancelling');
