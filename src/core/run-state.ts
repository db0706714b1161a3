import type { Event, RunEvent } from '../schema/event.ts';
import type { FinishReason, Message, MessagePart } from '../schema/message.ts';
import type { AwaitResume, Question, Run, RunStatus, RunUsage } from '../schema/run.ts';
import { runStatuses } from '../schema/statuses.ts';
import { append } from './collections.ts';
import { isPlainText } from './media-types.ts';

/** The allowed transitions of a run's status. */
export const transitions: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  created: ['in-progress', 'failed', 'cancelling'],
  'in-progress': ['completed', 'failed', 'awaiting', 'cancelling'],
  awaiting: ['in-progress', 'failed', 'cancelling'],
  cancelling: ['cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
};

export const canBecome = (from: RunStatus, to: RunStatus): boolean => transitions[from].includes(to);

/** No status follows: completed, failed and cancelled. */
export const finalStatuses: readonly RunStatus[] = runStatuses.filter((status) => transitions[status].length === 0);
export const openStatuses: readonly RunStatus[] = runStatuses.filter((status) => transitions[status].length > 0);

export const isFinal = (status: RunStatus): boolean => finalStatuses.includes(status);

/** Final or awaiting: a request in sync mode gets its response. */
export const isSettled = (status: RunStatus): boolean => status === 'awaiting' || isFinal(status);

/** The last message, while it has no `completed_at`; otherwise undefined. */
export function openMessage(run: Run): Message | undefined {
  const last = run.output.at(-1);
  return last !== undefined && last.completed_at === undefined ? last : undefined;
}

/**
 * Whether a message broke off when its process died, and its work was done again: the messages after it say it anew. People
 * see it. A model does not get it, because the same answer would be in its history twice.
 */
export const isInterrupted = ({ finish_reason }: Pick<Message, 'finish_reason'>): boolean =>
  finish_reason === 'interrupted';

/** What a model or a person is told of a message that is not whole, in place of the rest. */
export const cutOffNotes: Readonly<Record<CutOff, string>> = {
  length: 'This answer was cut off: it came to the limit of tokens.',
  content_filter: 'This answer was cut off by a content filter.',
  cancelled: 'This answer was stopped before its end.',
  failed: 'This answer ended with an error.',
};

/** A reason for which a message is the last that was said: nothing says it anew. */
export type CutOff = Exclude<FinishReason, 'interrupted'>;

/** A reason that the server of a model has given, and that protocols of models have a word for. */
export type ModelCutOff = Exclude<CutOff, 'cancelled' | 'failed'>;

export const isModelCutOff = (cutOff: CutOff | undefined): cutOff is ModelCutOff =>
  cutOff === 'length' || cutOff === 'content_filter';

/** Why a message that nothing says anew is not whole; undefined where it is. */
export const cutOffOf = ({ finish_reason }: Pick<Message, 'finish_reason'>): CutOff | undefined =>
  finish_reason === 'interrupted' ? undefined : finish_reason;

/**
 * Folds one event into a Run that the caller owns (it is changed in place), and returns the Run. A run event that is
 * not final carries no output: the Run keeps what it has.
 * The cost of a token does not grow with the run. `reduce` does the same without changing the Run.
 */
export function fold(run: Run, event: Event): Run {
  if ('run' in event) return runAfter(run, event.run);
  switch (event.type) {
    case 'message.created': {
      const { completed_at: _, ...open } = event.message;
      run.output = append(run.output, { ...open, parts: [...event.message.parts] });
      return run;
    }
    case 'message.part': {
      const open = openMessage(run);
      if (open !== undefined) open.parts = joinPart(open.parts, event.part);
      return run;
    }
    case 'message.completed':
      if (openMessage(run) !== undefined) run.output.pop();
      run.output.push(event.message);
      return run;
    case 'generic':
    case 'error':
      break;
    default:
      // A newer server may have more types.
      event satisfies never;
  }
  return run;
}

/** Only the final event carries output and questions; after any other run event, the Run keeps those that it has. */
function runAfter(before: Run, next: Run): Run {
  if (isFinal(next.status) || next.output.length > 0) return next;
  const { await_resume: _, ...run } = next;
  const questions = questionsAfter(before, next);
  return { ...run, ...(questions && { questions }), output: before.output };
}

/** A run that awaits has one question more. A reply belongs to the last one. */
function questionsAfter({ questions, output }: Run, { await_request, await_resume }: Run): Question[] | undefined {
  if (await_request !== undefined) return [...(questions ?? []), { request: await_request, position: output.length }];
  const asked = questions?.at(-1);
  if (questions === undefined || asked === undefined || await_resume === undefined) return questions;
  return [...questions.slice(0, -1), { ...asked, reply: await_resume }];
}

/** The event with which an awaiting run takes a reply. */
export function resumedEvent(run: Run, await_resume: AwaitResume): RunEvent {
  const { await_request: _, questions: __, ...rest } = run;
  return { type: 'run.in-progress', run: { ...rest, output: [], status: 'in-progress', await_resume } };
}

/** The messages of a conversation's turn: the output, with each question and its reply in their places. */
export function transcriptOf({ output, questions = [] }: Pick<Run, 'output' | 'questions'>): Message[] {
  const messages: Message[] = [];
  let at = 0;
  for (const { request, reply, position } of questions) {
    for (; at < position; at += 1) messages.push(...output.slice(at, at + 1));
    messages.push(request.message);
    if (reply !== undefined) messages.push(reply.message);
  }
  return [...messages, ...output.slice(at)];
}

/**
 * What a run that is over adds to its session's history after its input. The answer of a run that was cancelled or has failed
 * says so: its last message, or an empty one where the run ended before it or at a question.
 */
export function historyOf(run: Pick<Run, 'agent_name' | 'status' | 'output' | 'questions'>, now: string): Message[] {
  const { agent_name, status, output } = run;
  const messages = transcriptOf(run);
  if (status !== 'cancelled' && status !== 'failed') return messages;
  const said = output.at(-1);
  const isLast = said !== undefined && said === messages.at(-1) && said.finish_reason === undefined;
  const { completed_at = now, ...last } = isLast ? said : { role: `agent/${agent_name}`, parts: [], created_at: now };
  return [...(isLast ? messages.slice(0, -1) : messages), { ...last, completed_at, finish_reason: status }];
}

/** The pure reducer: (Run, Event) → Run. Copies only what the event touches, so a UI can compare by identity. */
export function reduce(run: Run, event: Event): Run {
  if (event.type === 'generic' || event.type === 'error') return run;
  if ('run' in event) return runAfter(run, event.run);
  const output = run.output.slice();
  const last = output.at(-1);
  if (last !== undefined && event.type === 'message.part') {
    const parts = last.parts.slice();
    const part = parts.at(-1);
    if (part !== undefined) parts[parts.length - 1] = { ...part };
    output[output.length - 1] = { ...last, parts };
  }
  return fold({ ...run, output }, event);
}

/**
 * Adds a part to parts that the caller owns, joining plain text with plain text before it; returns the parts.
 * Constant cost: V8 keeps the joined string as a rope, so a token costs the same at 20,000 as at 20.
 */
export function joinPart(parts: MessagePart[], part: MessagePart): MessagePart[] {
  const last = parts.at(-1);
  if (last !== undefined && isPlainText(part) && isPlainText(last)) {
    last.content += part.content;
    return parts;
  }
  return append(parts, { ...part });
}

/** A run's sum grows no further: one that became infinite would be null in JSON, and break the metrics. */
const maxUsage = Number.MAX_SAFE_INTEGER;

/** Adds what an agent reports. The parts of the sum appear once they are reported. */
export function addUsage(before: RunUsage | undefined, used: RunUsage): RunUsage {
  const sum: RunUsage = { ...before, tokens: sumOf(before?.tokens, used.tokens) };
  if (used.input_tokens !== undefined) sum.input_tokens = sumOf(sum.input_tokens, used.input_tokens);
  if (used.output_tokens !== undefined) sum.output_tokens = sumOf(sum.output_tokens, used.output_tokens);
  return sum;
}

/** What was reported after `before`, which is an earlier usage of the same run. */
export function usageAfter(before: RunUsage | undefined, usage: RunUsage | undefined): RunUsage | undefined {
  if (before === undefined || usage === undefined) return usage;
  const { tokens, input_tokens, output_tokens } = usage;
  // A re-entered agent may report less than before.
  const more = (now: number, earlier = 0): number => Math.max(0, now - earlier);
  return {
    tokens: more(tokens, before.tokens),
    ...(input_tokens !== undefined && { input_tokens: more(input_tokens, before.input_tokens) }),
    ...(output_tokens !== undefined && { output_tokens: more(output_tokens, before.output_tokens) }),
  };
}

const sumOf = (before = 0, used: number): number => Math.min(before + used, maxUsage);
