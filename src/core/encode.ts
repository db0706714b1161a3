import type { Event } from '../schema/event.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';

/** Line breaks that JSON need not escape. They only occur inside of strings, so escaping them does not change the value. */
const escapeBreaks = (json: string): string =>
  json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029').replaceAll('\u0085', '\\u0085');

/**
 * Makes one text of a text that was joined with `+` or a template. Until then, the text is a tree of its pieces, which takes
 * more memory. For texts that are kept.
 */
export function flat(text: string): string {
  // Reading a character joins the pieces. The result depends on the character, so that the read is not optimized away.
  return text.at(0) === undefined ? '' : text;
}

/** A part of plain text, and the line of a token, up to what is between the quotes of its content. */
const textHead = '{"content_type":"text/plain","content":"';
export const tokenHead = flat(`{"type":"message.part","part":${textHead}`);
/** What follows the content in the line of a token. */
export const tokenTail = '"}}';
/** Characters that a JSON string has to escape: quotes, controls, line breaks, lone surrogates. */
const odd = /[^ !#-[\]-~\u00a0-\u2027\u202a-\ud7ff\ue000-\uffff]/;

/** A value as one line of JSON for any reader. */
export const toLine = (value: unknown): string => escapeBreaks(JSON.stringify(value));
/** A text as the inside of a JSON string. */
export const insideOf = (text: string): string => toLine(text).slice(1, -1);
const encodeText = (text: string): string => (odd.test(text) ? insideOf(text) : text);

/**
 * An event as the one line of JSON that is stored and sent; `type` always comes first. Tokens, messages of plain text and
 * Runs that have nothing but them are concatenated, which is much faster than JSON.stringify. A caller that keeps the line
 * makes it `flat`.
 */
export function encode(event: Event): string {
  // Nearly all events are tokens, so they come first, without a call for the text.
  if (event.type === 'message.part' && isText(event.part)) {
    const { content } = event.part;
    // Not a template: it would convert each of the texts.
    return tokenHead + (odd.test(content) ? insideOf(content) : content) + tokenTail;
  }
  switch (event.type) {
    case 'message.created':
    case 'message.completed':
      return `{"type":"${event.type}","message":${encodeMessage(event.message)}}`;
    default:
      return 'run' in event ? `{"type":"${event.type}","run":${encodeRun(event.run)}}` : toLine(event);
  }
}

// Ids, names, roles and times have no character that JSON escapes: their schemas see to that.

function encodeRun(run: Run): string {
  const { run_id, agent_name, session_id, status, output, created_at, finished_at } = run;
  if (session_id === undefined || keysOf(run) !== (finished_at === undefined ? 6 : 7)) return toLine(run);
  const head = `{"run_id":"${run_id}","agent_name":"${agent_name}","session_id":"${session_id}","status":"${status}"`;
  const end = finished_at === undefined ? '' : `,"finished_at":"${finished_at}"`;
  return `${head},"output":[${output.map(encodeMessage).join(',')}],"created_at":"${created_at}"${end}}`;
}

/** A message as JSON, in pieces: what keeps it makes it `flat`. */
export function encodeMessage(message: Message): string {
  const { role, parts, created_at, completed_at } = message;
  if (created_at === undefined || completed_at === undefined || keysOf(message) !== 4) return toLine(message);
  let texts = '';
  for (const part of parts) {
    if (!isText(part)) return toLine(message);
    texts += `${texts === '' ? '' : ','}${textHead}${encodeText(part.content)}"}`;
  }
  const completed = completed_at === null ? 'null' : `"${completed_at}"`;
  return `{"role":"${role}","parts":[${texts}],"created_at":"${created_at}","completed_at":${completed}}`;
}

const isText = (part: MessagePart): part is MessagePart & { content: string } =>
  part.content_type === 'text/plain' && typeof part.content === 'string' && keysOf(part) === 2;

function keysOf(value: object): number {
  let keys = 0;
  for (const _ in value) keys += 1;
  return keys;
}

/** The Run that `encode` has put into the line of a run event, as JSON: it need not be encoded again. */
export function runInside(line: string): string {
  return line.slice(line.indexOf('"run":') + 6, -1);
}
