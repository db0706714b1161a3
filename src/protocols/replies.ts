import { fail, RivuletError } from '../core/errors.ts';
import { cut } from '../core/json.ts';
import type { Access } from '../engine/access.ts';
import type { RunHeaders } from '../schema/api.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { Run } from '../schema/run.ts';

/** Errors that mean that a run does not await this reply any more, or has ended. */
const passed = new Set<string>(['not_awaiting', 'question_mismatch', 'already_final']);

export const isPassed = (error: unknown): boolean => error instanceof RivuletError && passed.has(error.kind);

/** Characters of a reason; it may quote a client's reply. */
const maxReason = 500;

/**
 * Cancels a run that is not final; with the id of a question, only while the run awaits the reply to it. The
 * run's final event has the reason. Resolves to whether the run is cancelled.
 */
export async function cancelOpen(own: Access, run_id: string, question?: string, reason?: string): Promise<boolean> {
  try {
    await own.cancel(run_id, question, reason === undefined ? undefined : cut(reason, maxReason));
    return true;
  } catch (error) {
    if (!isPassed(error)) throw error;
    return false;
  }
}

/** The place of a reply, as the engine names it: the message, all of its text, or the JSON part. */
const inReply = /^await_resume\.message(?:\.parts(?:\[\d+\]\.content)?)?/;

/** An error about a reply, with the place that the reply has in the request of a client. */
export function atPlace(error: unknown, place: string): unknown {
  if (!(error instanceof RivuletError && error.kind === 'validation_failed')) return error;
  return new RivuletError(error.kind, error.message.replace(inReply, place));
}

/** An error of a client that has used the id of an earlier request. The client knows no Idempotency-Key where it has sent none. */
export function reusedId(error: unknown, headers: RunHeaders, field: string, advice: string): unknown {
  const isReused = error instanceof RivuletError && error.kind === 'idempotency_key_reused';
  return isReused && headers['idempotency-key'] === undefined ? fail('validation_failed', field, advice) : error;
}

/** The error of a failed run. */
export const errorOf = ({
  error = { code: 'server_error', message: 'The run failed.' },
}: Pick<Run, 'error'>): ErrorBody => error;

/** The code of a failed run: its agent's own, where it has one. */
export const codeOf = ({ code, data }: ErrorBody): string => (typeof data?.code === 'string' ? data.code : code);

/** What a client shows of a cancelled run. */
export const cancelledText = (reason?: string): string =>
  reason === undefined ? 'The run was cancelled.' : `The run is cancelled: ${reason}.`;
