import { fail, type RivuletError } from '../../core/errors.ts';
import type { AwaitRequest, Run } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';

/** The open question of a run, or that it has none. */
export type OpenQuestion = AwaitRequest | 'none';

/**
 * What a reply can answer: the question that it names, or else the one that was open when it came. That is noted before
 * anything is awaited, so that no reply is given to a question that is asked later.
 */
export interface ReplyTarget {
  /** The id that the reply names. */
  readonly id: string | undefined;
  /** The run's execution in this process. */
  readonly execution: Execution | undefined;
  /**
   * The open question of the execution. Undefined where only the store knows what a client can have seen: without an
   * execution, during a replay, and where the question is not durable yet.
   */
  readonly open: OpenQuestion | undefined;
  /** The open question of the store. Undefined where it was not read. */
  readonly stored?: OpenQuestion | undefined;
}

export function replyTarget(id: string | undefined, execution: Execution | undefined): ReplyTarget {
  if (execution === undefined) return { id, execution, open: undefined };
  const { replaying, run, log } = execution;
  // During a replay the execution may be at an earlier question; its row is that of the whole log.
  if (replaying) return { id, execution, open: log.row.status === 'awaiting' ? undefined : 'none' };
  const { await_request: open = 'none' } = run;
  return { id, execution, open: open === 'none' || log.row.snapshot <= log.durable ? open : undefined };
}

/** Whether the execution asks a question that a client can have seen. */
export const isOpen = ({ open }: ReplyTarget): boolean => open !== undefined && open !== 'none';

/** The question that a reply without an id is for, where this execution has the run now. Undefined for any. */
export function questionFor(
  { open, stored, execution: local }: ReplyTarget,
  execution: Execution | undefined,
): OpenQuestion | undefined {
  // An execution that has lost the run may have taken a reply, or ended, in events that count for nothing.
  return open === undefined || (open === 'none' && execution !== local) ? stored : open;
}

/** What a run asks, or the error with which it refuses a reply to this question; undefined for any. */
export function askedOf(
  { run_id, status, await_request }: Run,
  id: string | undefined,
  question: OpenQuestion | undefined,
): AwaitRequest | RivuletError {
  if (await_request === undefined) return fail('not_awaiting', run_id, status);
  const asked = await_request.id;
  if (id !== undefined && asked !== undefined && id !== asked) return fail('question_mismatch', asked, id);
  if (id !== undefined || question === undefined) return await_request;
  if (question === 'none') return fail('conflict', run_id);
  if (isSame(question, await_request)) return await_request;
  return asked === undefined || question.id === undefined || asked === question.id
    ? fail('conflict', run_id)
    : fail('question_mismatch', asked, question.id);
}

/** A question that was never durable leaves its id to another one. */
const isSame = (one: AwaitRequest, other: AwaitRequest): boolean => JSON.stringify(one) === JSON.stringify(other);
