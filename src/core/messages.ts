import type { Message, MessageInput, MessagePart } from '../schema/message.ts';
import { fail } from './errors.ts';
import { partProblem } from './parts.ts';

const utc = (time: string): string => (time.endsWith('Z') ? time : new Date(time).toISOString());

const withType = (part: MessagePart): MessagePart =>
  part.content_type === undefined ? { content_type: 'text/plain', ...part } : part;

/**
 * Completes a message that fits its schema: role, content types, times.
 * @throws RivuletError `misfit` that names the part, where a part contradicts itself.
 */
export function receiveMessage(input: MessageInput, path: string, now: string): Message {
  input.parts.forEach((part, index) => {
    const problem = partProblem(part);
    if (problem !== undefined) throw fail('misfit', `${path}.parts[${index}]`, problem);
  });
  return {
    // Not after the spread: what is added to a copy of another object costs V8 ten times as much.
    role: 'user',
    ...input,
    parts: input.parts.map(withType),
    created_at: utc(input.created_at ?? now),
    completed_at: utc(input.completed_at ?? now),
  };
}

/** A text, as a message of its own. */
export function textMessage(role: string, content: string, now: string): Message {
  return { role, parts: [{ content_type: 'text/plain', content }], created_at: now, completed_at: now };
}
