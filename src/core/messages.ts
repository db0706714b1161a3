import { utcOf } from '../schema/formats.ts';
import type { Message, MessageInput, MessagePart } from '../schema/message.ts';
import { DateTime } from '../schema/scalars.ts';
import { fail } from './errors.ts';
import { cut } from './json.ts';
import { covers, isText } from './media-types.ts';

const withType = (part: MessagePart): MessagePart =>
  part.content_type === undefined ? { content_type: 'text/plain', ...part } : part;

/** What is wrong with a text that is not a date and time. */
export const expectedTime = (got: string): string =>
  `expected ${DateTime.description}, got ${JSON.stringify(cut(got, 60))}`;

function utc(time: string, path: string): string {
  const given = utcOf(time);
  if (given === undefined) throw fail('validation_failed', path, expectedTime(time));
  return given;
}

/**
 * Completes a message that fits its schema: role, content types, times in UTC.
 * @throws RivuletError `validation_failed` that names the part whose fields contradict each other
 */
export function receiveMessage(input: MessageInput, path: string, now: string): Message {
  input.parts.forEach((part, index) => {
    const problem = partProblem(part);
    if (problem !== undefined) throw fail('validation_failed', `${path}.parts[${index}]`, problem);
  });
  return {
    role: 'user',
    ...input,
    parts: input.parts.map(withType),
    created_at: input.created_at === undefined ? now : utc(input.created_at, `${path}.created_at`),
    completed_at: input.completed_at === undefined ? now : utc(input.completed_at, `${path}.completed_at`),
  };
}

/** A deep copy. The parts of most messages are flat, and are copied without JSON. */
export function copyMessage(message: Message): Message {
  const { parts } = message;
  const flat = objectsIn(message) === 1 && parts.every((part) => objectsIn(part) === 0);
  return flat ? { ...message, parts: parts.map((part) => ({ ...part })) } : JSON.parse(JSON.stringify(message));
}

const objectsIn = (value: object): number => Object.values(value).filter((field) => typeof field === 'object').length;

/** Characters of a title. */
const titleLength = 120;

/** The beginning of the messages' text on one line, for lists. Reads no more of a long text than it needs. */
export function titleOf(messages: readonly Message[]): string {
  let text = '';
  for (const { parts } of messages)
    for (const part of parts) {
      if (text.length > titleLength) break;
      if (isText(part)) text += ` ${part.content.slice(0, 4 * titleLength)}`;
    }
  return cut(text.replace(/[\s\p{C}]+/gu, ' ').trim(), titleLength);
}

/** A message with one text part. */
export function textMessage(role: string, content: string, now: string): Message {
  return { role, parts: [{ content_type: 'text/plain', content }], created_at: now, completed_at: now };
}

/**
 * Checks that the agent accepts the content type of each part.
 * @throws RivuletError `content_type_refused`
 */
export function checkContentTypes(agent: string, takes: readonly string[], input: readonly Message[]): void {
  input.forEach((message, m) => {
    message.parts.forEach((part, p) => {
      const type = part.content_type ?? 'text/plain';
      if (!takes.some((range) => covers(range, type))) {
        throw fail('content_type_refused', `input[${m}].parts[${p}]`, type, agent, takes.join(', '));
      }
    });
  });
}

// Searching for one invalid character never backtracks; a pattern for the whole text could, on megabytes.
const notBase64 = /[^A-Za-z0-9+/]/;

/** Whether a text is base64 with padding. */
export function isBase64(text: string): boolean {
  const body = text.endsWith('==') ? text.slice(0, -2) : text.endsWith('=') ? text.slice(0, -1) : text;
  return text.length % 4 === 0 && !notBase64.test(body);
}

/** The problem of a part whose fields contradict each other, or undefined. */
export function partProblem(part: MessagePart): string | undefined {
  if (part.content !== undefined && part.content_url !== undefined) {
    return 'has both content and content_url; send one of them';
  }
  if (part.content_encoding === 'base64' && part.content !== undefined && !isBase64(part.content)) {
    return 'content is not base64, which content_encoding says it is';
  }
  return undefined;
}
