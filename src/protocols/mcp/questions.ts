import { runEventOf } from '../../core/encode.ts';
import { RivuletError } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import type { AwaitRequest, RunDetails } from '../../schema/run.ts';

/** The id of a question within its run. */
export const questionId = ({ id = '1' }: AwaitRequest): string => id;

/** What a run asks, while it awaits the reply to this question. @throws RivuletError `run_unknown`, `log_removed` */
export async function openQuestion(own: Access, run_id: string, question: string): Promise<AwaitRequest | undefined> {
  const { status, await_request }: RunDetails = JSON.parse(await own.details(run_id));
  const isOpen = status === 'awaiting' && await_request !== undefined && questionId(await_request) === question;
  return isOpen ? await_request : undefined;
}

/** Errors that mean that a run does not await this reply any more, or has ended. */
const passed = new Set<string>(['not_awaiting', 'question_mismatch', 'already_final']);

export const isPassed = (error: unknown): boolean => error instanceof RivuletError && passed.has(error.kind);

/** Cancels a run that is not final. */
export async function cancel(own: Access, run_id: string): Promise<void> {
  try {
    await own.cancel(run_id);
  } catch (error) {
    if (!isPassed(error)) throw error;
  }
}

/** Cancels a run that still awaits the reply to this question. Resolves to whether it did. */
export async function cancelUnanswered(own: Access, run_id: string, question: string): Promise<boolean> {
  const asked = await openQuestion(own, run_id, question);
  if (asked !== undefined) await cancel(own, run_id);
  return asked !== undefined;
}

/** Cancels a run whose client cannot be asked as soon as it asks: it would await a reply for as long as it may. */
export async function cancelOnceAsked(own: Access, run_id: string, from: number): Promise<void> {
  try {
    for await (const { lines } of await own.stream(run_id, { after: from, until: 'settled' })) {
      if (runEventOf(lines.at(-1) ?? '') === 'awaiting') await cancel(own, run_id);
    }
  } catch {
    // The answer of the call has the error.
  }
}
