import { fail, RivuletError } from '../../core/errors.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { AwaitRequest, Run } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';

/** The number of the event with which a run asks its open question; 0 for none. In the store, an event keeps its number. */
export const openQuestionNumber = ({ status, snapshot }: RunRow): number => (status === 'awaiting' ? snapshot : 0);

/**
 * The question that a reply answers: the one that it names, or else the one that was open when the reply arrived. The open
 * question is noted before anything is awaited, so that a reply never answers a question that is asked later.
 */
export interface ReplyTarget {
  /** The id that the reply names. */
  readonly id: string | undefined;
  /** The run's execution in this process. */
  readonly execution: Execution | undefined;
  /** Its open question. Undefined where its last run event is not durable: a client can have seen only what the store has. */
  readonly asked: number | undefined;
  /** The run in the store. Undefined where the question is known without it. */
  readonly stored: Promise<RunRow> | undefined;
}

/** What a reply is for, when it comes. `read` gets the run's row from the store. */
export function replyTarget(
  id: string | undefined,
  execution: Execution | undefined,
  read: () => Promise<RunRow>,
): ReplyTarget {
  if (id !== undefined) return { id, execution, asked: undefined, stored: undefined };
  const log = execution?.log;
  const asked = log !== undefined && log.row.snapshot <= log.durable ? openQuestionNumber(log.row) : undefined;
  const stored = asked === undefined || asked === 0 ? read() : undefined;
  // It may fail before, or without, being waited for.
  stored?.catch(() => undefined);
  return { id, execution, asked, stored };
}

/**
 * Whether the reply's question is known without the store. Only the execution that owns the run knows that no question is
 * open: one that has lost the run may not have heard of a question.
 */
export const isKnown = ({ asked, execution: local }: ReplyTarget, execution: Execution | undefined): boolean =>
  asked !== undefined && (asked > 0 || execution === local);

/**
 * What a run asks, or the error with which the run refuses a reply or a cancel for another question. Such a request names its
 * question by `id`, or else by `meant`, the number of the event that asked it; with neither, it is for any question. `open` is
 * the number of the event that asked the open question.
 */
export function askedOf(
  { run_id, status, await_request }: Run,
  id: string | undefined,
  meant?: number,
  open?: number,
): AwaitRequest | RivuletError {
  if (await_request === undefined) return fail('not_awaiting', run_id, status);
  const asked = await_request.id;
  if (id !== undefined && asked !== undefined && id !== asked) return fail('question_mismatch', asked, id);
  if (meant === undefined || meant === open) return await_request;
  return meant === 0 || asked === undefined ? fail('conflict', run_id) : fail('question_mismatch', asked);
}

/** The error with which a run refuses a reply after the time of its question, before the next sweep ends the run. */
export function lateFor({ run_id, await_request }: Run, now: string): RivuletError | undefined {
  const isLate = await_request?.expires_at !== undefined && await_request.expires_at <= now;
  return isLate ? fail('not_awaiting', run_id, 'past the time for a reply') : undefined;
}

/** Whether a run asks the question with this id. */
export const asks = (run: Run, id: string): boolean => !(askedOf(run, id) instanceof RivuletError);
