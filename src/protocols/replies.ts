import { RivuletError } from '../core/errors.ts';
import { cut } from '../core/json.ts';
import type { Access } from '../engine/access.ts';

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
