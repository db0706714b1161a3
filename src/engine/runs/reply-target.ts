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
  /** The run's execution in this process. */
  readonly execution: Execution | undefined;
  /** All questions of the execution, durable or not. */
  readonly asked: readonly AwaitRequest[];
  /** Undefined where only the store knows. */
  readonly open: AwaitRequest | 'none' | undefined;
  /** Whether `open` is a question that no client can have seen yet, because it is not durable. */
  readonly isUnseen: boolean;
  /** The question that the store had then, where `open` is unseen: it counts if the execution turns out to be fenced. */
  readonly inStore?: AwaitRequest | 'none' | undefined;
}

export function replyTarget(id: string | undefined, execution: Execution | undefined): ReplyTarget {
  if (execution === undefined) return { id, execution, asked: [], open: undefined, isUnseen: false };
  const { replaying, run, log } = execution;
  // During a replay the execution may be at an earlier question; its row is that of the whole log.
  if (replaying)
    return { id, execution, asked: [], open: log.row.status === 'awaiting' ? undefined : 'none', isUnseen: false };
  const { await_request: open = 'none', questions = [] } = run;
  const isUnseen = open !== 'none' && log.row.snapshot > log.durable;
  return { id, execution, asked: questions.map(({ request }) => request), open, isUnseen };
}

/** The questions that the first attempt to give a reply may answer, with this execution; undefined for any. */
export function firstQuestions(
  { open, inStore, execution: local }: ReplyTarget,
  execution: Execution | undefined,
): readonly AwaitRequest[] | undefined {
  const isFenced = local !== undefined && local !== execution;
  if (isFenced && inStore !== undefined) return inStore === 'none' ? [] : [inStore];
  if (open !== 'none') return open && [open];
  // Where the execution was fenced without knowing it, the run may have asked elsewhere.
  return isFenced ? undefined : [];
}

/** What a run asks, or the error with which it refuses a reply to these questions. */
export function askedOf(
  { run_id, status, await_request }: Run,
  { id }: Pick<ReplyTarget, 'id'>,
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

/** A question that was never durable leaves its id to another one. */
const isSame = (one: AwaitRequest, other: AwaitRequest): boolean => JSON.stringify(one) === JSON.stringify(other);
