import { RivuletError } from '../core/errors.ts';
import type { Access } from '../engine/access.ts';

/** Errors that mean that a run does not await this reply any more, or has ended. */
const passed = new Set<string>(['not_awaiting', 'question_mismatch', 'already_final']);

export const isPassed = (error: unknown): boolean => error instanceof RivuletError && passed.has(error.kind);

/**
 * Cancels a run that is not final; with the id of a question, only while the run awaits the reply to it. Resolves to whether
 * the run is cancelled.
 */
export async function cancelOpen(own: Access, run_id: string, question?: string): Promise<boolean> {
  try {
    await own.cancel(run_id, question);
    return true;
  } catch (error) {
    if (!isPassed(error)) throw error;
    return false;
  }
}
