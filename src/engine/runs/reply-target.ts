import { fail, type RivuletError } from '../../core/errors.ts';
import type { AwaitRequest, Run } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';

/**
 * What a reply can answer: the question that it names, or else the one that was open when it came. That is noted before
 * anything is awaited, so that no reply is given to a question that is asked later.
 */
export interface ReplyTarget {
  /** The id that the reply names. */
  readonly id: string | undefined;
  readonly open: AwaitRequest | undefined;
  /** The run's execution in this process, and all of its questions, durable or not. */
  readonly local: { readonly execution: Execution; readonly asked: readonly AwaitRequest[] } | undefined;
}

export function replyTarget(id: string | undefined, execution: Execution | undefined): ReplyTarget {
  // During a replay the execution may be at an earlier question.
  if (execution === undefined || execution.replaying) return { id, open: undefined, local: undefined };
  const { await_request: open, questions = [] } = execution.run;
  return { id, open, local: { execution, asked: questions.map(({ request }) => request) } };
}

/** The questions of a run that a reply may answer, in the first attempt to give it; undefined for any. */
export function firstQuestions(
  { open, local }: ReplyTarget,
  execution: Execution | undefined,
): readonly AwaitRequest[] | undefined {
  if (open !== undefined) return [open];
  // Where the execution was fenced without knowing it, the run may have asked elsewhere.
  return local !== undefined && local.execution === execution ? [] : undefined;
}

/** What a run asks, or the error with which it refuses a reply to these questions. */
export function askedOf(
  { run_id, status, await_request }: Run,
  { id }: ReplyTarget,
  questions: readonly AwaitRequest[] | undefined,
): AwaitRequest | RivuletError {
  if (await_request === undefined) return fail('not_awaiting', run_id, status);
  const asked = await_request.id;
  if (id !== undefined && asked !== undefined && id !== asked) return fail('question_mismatch', asked, id);
  if (id !== undefined || questions === undefined || questions.some((one) => isSame(one, await_request)))
    return await_request;
  const meant = questions.at(-1)?.id;
  return asked === undefined || meant === undefined || asked === meant
    ? fail('conflict', run_id)
    : fail('question_mismatch', asked, meant);
}

/** A question that was never durable leaves its id to another one, with another time. */
const isSame = (one: AwaitRequest, other: AwaitRequest): boolean =>
  one.id === other.id && one.message.created_at === other.message.created_at;
