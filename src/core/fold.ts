import type { Event, RunEvent } from '../schema/event.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { AwaitResume, Question, Run } from '../schema/run.ts';
import { append } from './collections.ts';
import { isPlainText } from './media-types.ts';
import { isFinal } from './run-state.ts';

/**
 * Folds one event into a Run that the caller owns (it is changed in place), and returns the Run. A run event that is
 * not final carries no output: the Run keeps what it has. `reduce` does the same without changing the Run.
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
 * Adds a part to parts that the caller owns, and returns the parts. Plain text is joined with plain text before it.
 */
export function joinPart(parts: MessagePart[], part: MessagePart): MessagePart[] {
  const last = parts.at(-1);
  if (last !== undefined && isPlainText(part) && isPlainText(last)) {
    last.content += part.content;
    return parts;
  }
  return append(parts, { ...part });
}

/** The last message, while it has no `completed_at`; otherwise undefined. */
export function openMessage(run: Run): Message | undefined {
  const last = run.output.at(-1);
  return last !== undefined && last.completed_at === undefined ? last : undefined;
}

/** The event with which an awaiting run takes a reply. */
export function resumedEvent(run: Run, await_resume: AwaitResume): RunEvent {
  const { await_request: _, questions: __, ...rest } = run;
  return { type: 'run.in-progress', run: { ...rest, output: [], status: 'in-progress', await_resume } };
}
