import { defer, map, type Observable, reduce } from 'rxjs';
import type { Event } from '../schema/event.ts';
import type { FinishReason, Message, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import type { AgentOutput } from './agent.ts';
import { checkOutput } from './check-output.ts';
import { isInterrupted } from './cut-off.ts';
import { joinPart, openMessage } from './fold.ts';

/** Takes an event. The caller folds it into the run at once, so that the next event follows from it. */
export type Emit = (event: Event) => void;

/** Turns one emission of an agent into the events that follow from it, given the run so far. */
export type ToEvents = (run: Run, output: AgentOutput | undefined, emit: Emit) => void;

/**
 * Returns the function that turns an agent's output into events. Loose parts open a message and go into it. A whole message
 * completes the open message first. A message without parts does only that, and the open message gets its
 * `finish_reason`. The function throws RivuletError `output_invalid` for a value that is not output.
 */
export function createToEvents(now: () => string): ToEvents {
  const loosePart = (run: Run, part: MessagePart, emit: Emit): void => {
    if (openMessage(run) === undefined) {
      const role = `agent/${run.agent_name}`;
      emit({ type: 'message.created', message: { role, parts: [], created_at: now(), completed_at: null } });
    }
    emit({ type: 'message.part', part });
  };

  const wholeMessage = (run: Run, message: Message, emit: Emit): void => {
    const isEmpty = message.parts.length === 0;
    closeMessage(run, emit, now, isEmpty ? message.finish_reason : undefined);
    if (isEmpty) return;
    emit({ type: 'message.created', message: { ...message, parts: [], completed_at: null } });
    for (const part of message.parts) emit({ type: 'message.part', part });
    emit({ type: 'message.completed', message });
  };

  return (run, output, emit) => {
    if (typeof output === 'string') return loosePart(run, { content_type: 'text/plain', content: output }, emit);
    if (output === undefined) return;
    const emission = checkOutput(run.agent_name, output, now());
    if ('part' in emission) loosePart(run, emission.part, emit);
    else if ('whole' in emission) wholeMessage(run, emission.whole, emit);
    else emit(emission);
  };
}

/** Completes the open message, if there is one. `finish_reason`: why it is not whole. */
export function closeMessage(run: Run, emit: Emit, now: () => string, finish_reason?: FinishReason): void {
  const open = openMessage(run);
  if (open === undefined) return;
  const { role, ...rest } = open;
  const message = { role, ...rest, ...(finish_reason && { finish_reason }), completed_at: now() };
  emit({ type: 'message.completed', message });
}

/** Collects an agent's output into one message, without generic events and interrupted messages. */
export const collected = (agent: string, output: Observable<AgentOutput>, now: () => string): Observable<Message> =>
  defer(() => {
    const created_at = now();
    /** The parts of the message that is open. */
    let open: MessagePart[] = [];
    /** Adds what an agent has emitted to the parts of the messages before the open one. */
    const add = (parts: MessagePart[], said: AgentOutput): MessagePart[] => {
      if (typeof said === 'string') open = joinPart(open, { content_type: 'text/plain', content: said });
      else if (said === undefined || 'generic' in said) return parts;
      else if ('parts' in said) {
        const before = said.parts.length === 0 && isInterrupted(said) ? [] : open;
        open = [];
        return [...before, ...(isInterrupted(said) ? [] : said.parts)].reduce(joinPart, parts);
      } else open = joinPart(open, said);
      return parts;
    };
    return output.pipe(
      reduce(add, []),
      map((parts) => ({
        role: `agent/${agent}`,
        parts: open.reduce(joinPart, parts),
        created_at,
        completed_at: now(),
      })),
    );
  });
