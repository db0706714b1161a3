import type { Event } from '../schema/event.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { Run, RunStatus } from '../schema/run.ts';
import { append } from './collections.ts';

/** Which status may follow which; whatever is not here cannot happen. */
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

/** Over: nothing follows. */
export const isFinal = (status: RunStatus): boolean => transitions[status].length === 0;

/** Over, or waiting for an answer: a request in sync mode is answered now. */
export const isSettled = (status: RunStatus): boolean => status === 'awaiting' || isFinal(status);

/** The message that is being written, or undefined: the last one, while it has no `completed_at`. */
export function openMessage(run: Run): Message | undefined {
  const last = run.output.at(-1);
  return last !== undefined && last.completed_at === undefined ? last : undefined;
}

/**
 * Folds one event into a Run that the caller owns (it is changed in place), and returns the Run. A run event that is
 * not final carries no output: the Run keeps what it has.
 * The cost of a token does not grow with the run; `reduce` is the same for those who may not change it.
 */
export function fold(run: Run, event: Event): Run {
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
      return run;
    default:
      // An event that a newer server added may have no run.
      return 'run' in event ? runAfter(run, event.run) : run;
  }
}

/** Only the last event of a run repeats its output; before it, output that is not sent is what there is already. */
const runAfter = (before: Run, next: Run): Run =>
  isFinal(next.status) || next.output.length > 0 ? next : { ...next, output: before.output };

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

/** Text that has nothing but its text: parts of this kind that follow each other are joined. */
function isPlainText(part: MessagePart): boolean {
  if (typeof part.content !== 'string') return false;
  for (const key in part) {
    if (key === 'content') continue;
    if (key === 'content_type' && part.content_type === 'text/plain') continue;
    if (key === 'content_encoding' && part.content_encoding === 'plain') continue;
    return false;
  }
  return true;
}

/**
 * Adds a part to parts that the caller owns, joining plain text with plain text before it; returns the parts.
 * Constant cost: V8 keeps the joined string as a rope, so a token costs the same at 20,000 as at 20.
 */
export function joinPart(parts: MessagePart[], part: MessagePart): MessagePart[] {
  const last = parts.at(-1);
  if (last !== undefined && isPlainText(part) && isPlainText(last)) {
    last.content = `${last.content}${part.content}`;
    return parts;
  }
  return append(parts, { ...part });
}
