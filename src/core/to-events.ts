import { type Event, GenericEvent } from '../schema/event.ts';
import { type Message, MessageInput, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import type { AgentOutput } from './agent.ts';
import { fail, RivuletError } from './errors.ts';
import { receiveMessage } from './messages.ts';
import { partProblem } from './parts.ts';
import { openMessage } from './reduce.ts';
import { compile } from './validate.ts';

/** Takes an event; the caller folds it into the run at once, so that the next decision sees it. */
export type Emit = (event: Event) => void;

/** Turns one emission of an agent into the events that follow from it, given the run so far. */
export type ToEvents = (run: Run, output: AgentOutput | undefined, emit: Emit) => void;

/**
 * Compiles the checks of an agent's output and returns the function that turns it into events.
 * Loose parts open a message and go into it; a whole message completes the open one first.
 * The function throws RivuletError `output_invalid` for anything that is no output.
 */
export function createToEvents(now: () => string): ToEvents {
  const checkPart = compile(MessagePart, 'part');
  const checkMessage = compile(MessageInput, 'message');
  const checkGeneric = compile(GenericEvent, 'generic');

  const loosePart = (run: Run, part: MessagePart, emit: Emit): void => {
    if (openMessage(run) === undefined) {
      emit({
        type: 'message.created',
        message: { role: roleOf(run), parts: [], created_at: now(), completed_at: null },
      });
    }
    emit({ type: 'message.part', part });
  };

  const wholeMessage = (run: Run, output: object, emit: Emit): void => {
    const given = checkMessage('role' in output ? { ...output, role: roleOf(run) } : output);
    const message: Message = { ...receiveMessage(given, 'message', now()), role: roleOf(run) };
    closeMessage(run, emit, now);
    emit({ type: 'message.created', message: { ...message, parts: [], completed_at: null } });
    for (const part of message.parts) emit({ type: 'message.part', part });
    emit({ type: 'message.completed', message });
  };

  return (run, output, emit) => {
    // The token: what nearly every call is about, so it comes first and is checked for nothing else.
    if (typeof output === 'string') return loosePart(run, { content_type: 'text/plain', content: output }, emit);
    if (output === undefined) return;
    try {
      const data = detach(output);
      if ('generic' in data && 'type' in data && data.type === 'generic') return emit(checkGeneric(data));
      if ('parts' in data) return wholeMessage(run, data, emit);
      const part = checkPart(data);
      const problem = isEmpty(data) ? 'an object with no field of a part or message' : partProblem(part);
      if (problem !== undefined) throw fail('output_invalid', run.agent_name, problem);
      loosePart(run, { content_type: 'text/plain', ...part }, emit);
    } catch (error) {
      if (error instanceof RivuletError && error.kind === 'misfit') {
        throw fail('output_invalid', run.agent_name, error.message.replace(/\.$/, ''));
      }
      throw error;
    }
  };
}

/** Completes the open message, if there is one. */
export function closeMessage(run: Run, emit: Emit, now: () => string): void {
  const open = openMessage(run);
  if (open === undefined) return;
  const { role, ...rest } = open;
  emit({ type: 'message.completed', message: { role, ...rest, completed_at: now() } });
}

const roleOf = (run: Run): string => `agent/${run.agent_name}`;

const partFields = Object.keys(MessagePart.properties);
const isEmpty = (data: object): boolean => !partFields.some((field) => field in data);

// A copy, because the agent may go on changing its object, and only what JSON can say gets on.
function detach(output: unknown): object {
  const kind = output === null ? 'null' : Array.isArray(output) ? 'an array' : typeof output;
  if (kind !== 'object') throw fail('misfit', 'output', `got ${kind}, not text, a part or a message`);
  try {
    return JSON.parse(JSON.stringify(output));
  } catch (error) {
    throw fail(
      'misfit',
      'output',
      `JSON cannot say it: ${error instanceof Error ? error.message.split('\n', 1)[0] : 'no reason'}`,
    );
  }
}
