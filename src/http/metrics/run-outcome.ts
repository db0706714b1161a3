import { errorTable } from '../../core/errors.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { RunStatus } from '../../schema/run.ts';

/** How a run ended. Of its failures, time-outs and those of the server are told apart. */
export type RunOutcome = 'completed' | 'failed' | 'timed_out' | 'interrupted' | 'cancelled';

export interface Ending {
  readonly outcome: RunOutcome;
  /** A row of the table of errors, `_other` for an error of an agent, empty without an error. */
  readonly error_code: string;
}

const timedOut = new Set(['await_timeout', 'run_timeout', 'idle_timeout']);
const interrupted = new Set(['run_interrupted', 'recovery_exhausted', 'store_failed']);

export function endingOf(status: RunStatus, error: ErrorBody | undefined): Ending {
  const reason = error?.data?.reason;
  const isOwn = typeof reason === 'string' && Object.hasOwn(errorTable, reason);
  const error_code = error === undefined ? '' : isOwn ? reason : '_other';
  if (status === 'completed' || status === 'cancelled') return { outcome: status, error_code };
  const outcome = timedOut.has(error_code) ? 'timed_out' : interrupted.has(error_code) ? 'interrupted' : 'failed';
  return { outcome, error_code };
}
