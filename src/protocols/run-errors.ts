import type { ErrorBody } from '../schema/error.ts';
import type { Run } from '../schema/run.ts';

// What clients of other protocols are told of a run that did not complete.

/** The error of a failed run. */
export const failureOf = ({
  error = { code: 'server_error', message: 'The run failed.' },
}: Pick<Run, 'error'>): ErrorBody => error;

/** The code of a failed run: its agent's own, where it has one. */
export const failureCode = ({ code, data }: ErrorBody): string => (typeof data?.code === 'string' ? data.code : code);

/** What a client shows of a cancelled run. */
export const cancelledText = (reason?: string): string =>
  reason === undefined ? 'The run was cancelled.' : `The run is cancelled: ${reason}.`;
