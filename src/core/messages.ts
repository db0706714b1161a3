import { utcOf } from '../schema/formats.ts';
import type { Message, MessageInput, MessagePart } from '../schema/message.ts';
import { fail } from './errors.ts';
import { partProblem } from './parts.ts';

const withType = (part: MessagePart): MessagePart =>
  part.content_type === undefined ? { content_type: 'text/plain', ...part } : part;

function utc(time: string, path: string): string {
  const given = utcOf(time);
  if (given === undefined) throw fail('misfit', path, 'is no date and time');
  return given;
}

/**
 * Completes a message that fits its schema: role, content types, times in UTC.
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
    created_at: input.created_at === undefined ? now : utc(input.created_at, `${path}.created_at`),
    completed_at: input.completed_at === undefined ? now : utc(input.completed_at, `${path}.completed_at`),
  };
}

/** A copy that shares nothing with the message. Most are flat: to write those as JSON and read it takes ten times as long. */
export function copyMessage(message: Message): Message {
  const { parts } = message;
  const flat = objectsIn(message) === 1 && parts.every((part) => objectsIn(part) === 0);
  return flat ? { ...message, parts: parts.map((part) => ({ ...part })) } : JSON.parse(JSON.stringify(message));
}

const objectsIn = (value: object): number => Object.values(value).filter((field) => typeof field === 'object').length;

/** A text, as a message of its own. */
export function textMessage(role: string, content: string, now: string): Message {
  return { role, parts: [{ content_type: 'text/plain', content }], created_at: now, completed_at: now };
}
