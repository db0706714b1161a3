import { fail } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import type { MessageInput } from '../../schema/message.ts';
import { runPlaceIds } from '../run-place.ts';
import { outlineOf, questionAt } from '../turns.ts';
import { textIn } from './input-messages.ts';
import { isSaid, type ResumeEntry, type RunAgentInput, type Said } from './run-input.ts';

/** The question that a request answers, which is event `n` of the log of a run, and its reply. */
export interface Answer {
  readonly run_id: string;
  readonly n: number;
  /** Absent: the client gives the question up, and the run with it. */
  readonly message?: MessageInput;
  /** Where the request has the reply. */
  readonly path: string;
  /** Whether the reply is the result of a tool that the client has run. */
  readonly isResult: boolean;
}

const questionIds = runPlaceIds('', '.');

/**
 * The answer in a request: its `resume`, or the result of a client's tool as its last message.
 * @throws RivuletError `validation_failed` for a `resume` that answers nothing of this server
 */
export function answerIn({ resume = [], messages }: RunAgentInput): Answer | undefined {
  const [entry] = resume;
  if (resume.length > 1) {
    throw fail(
      'validation_failed',
      'resume',
      `expected one entry, because a run asks one question at a time; got ${resume.length}`,
    );
  }
  if (entry !== undefined)
    return { ...questionIn(entry), ...replyTo(entry), path: 'resume[0].payload', isResult: false };
  const last = messages.filter(isSaid).at(-1);
  const question = last?.role === 'tool' ? questionOf(last.toolCallId ?? '') : undefined;
  return last === undefined || question === undefined
    ? undefined
    : { ...question, message: resultOf(last), path: `messages[${messages.indexOf(last)}].content`, isResult: true };
}

function questionOf(id: string): { run_id: string; n: number } | undefined {
  const { run_id, n } = questionIds.in(id) ?? {};
  return run_id === undefined || n === undefined ? undefined : { run_id, n };
}

function questionIn({ interruptId }: ResumeEntry): { run_id: string; n: number } {
  const question = questionOf(interruptId);
  if (question !== undefined) return question;
  throw fail(
    'validation_failed',
    'resume[0].interruptId',
    'expected the id of an interrupt, as this server has sent it',
  );
}

function replyTo({ status, payload }: ResumeEntry): { message?: MessageInput } {
  if (status === 'cancelled') return {};
  const part =
    payload === undefined || payload === null || typeof payload === 'string'
      ? { content_type: 'text/plain', content: payload ?? '' }
      : { content_type: 'application/json', content: JSON.stringify(payload) };
  return { message: { parts: [part] } };
}

/** With the id that the client has given it, so that a page that reloads gets the same message back. */
function resultOf(message: Said): MessageInput & Pick<Said, 'id' | 'error'> {
  const content = textIn(message) || (message.error ?? '');
  const { id, error } = message;
  return { parts: [{ content_type: 'text/plain', content }], id, error };
}

/**
 * The id of a question, while the run awaits its reply; undefined where it does not any more.
 * @throws RivuletError `not_awaiting` where the event asks nothing: no client's run begins after it
 */
export async function openQuestion(
  own: Access,
  { run_id, n }: Answer,
): Promise<{ id: string | undefined } | undefined> {
  const { changes } = await outlineOf(own, run_id);
  const asked = changes.find((change) => change.n === n);
  if (asked?.status !== 'awaiting') {
    throw fail('not_awaiting', run_id, 'not at this question');
  }
  if (asked !== changes.at(-1)) return undefined;
  const question = await questionAt(own, run_id, n);
  return question === undefined ? undefined : { id: question.id };
}
