import { runEventOf } from '../../core/encode.ts';
import type { Access } from '../../engine/access.ts';
import type { AwaitRequest, RunDetails } from '../../schema/run.ts';
import { cancelOpen } from '../cancel.ts';

/** The id of a question within its run. */
export const questionId = ({ id = '1' }: AwaitRequest): string => id;

/** What a run asks, while it awaits the reply to this question. @throws RivuletError `run_unknown`, `log_removed` */
export async function openQuestion(own: Access, run_id: string, question: string): Promise<AwaitRequest | undefined> {
  const { status, await_request }: RunDetails = JSON.parse(await own.details(run_id));
  const isOpen = status === 'awaiting' && await_request !== undefined && questionId(await_request) === question;
  return isOpen ? await_request : undefined;
}

/**
 * Cancels a run whose client cannot be asked as soon as it asks, whatever it asks: it would await a reply for as long as it
 * may. A reply that comes by another way does not keep it, as its client could not be asked the next question either.
 */
export async function cancelOnceAsked(own: Access, run_id: string, from: number): Promise<void> {
  try {
    for await (const { lines } of await own.stream(run_id, { after: from, until: 'settled', keeps: false })) {
      if (runEventOf(lines.at(-1) ?? '') === 'awaiting') await cancelOpen(own, run_id);
    }
  } catch {
    // The answer of the call has the error.
  }
}
