import type { Event } from '../schema/event.ts';
import type { FinishReason, Message, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { type LoggedStatus, loggedStatuses } from '../schema/statuses.ts';
import { isSettled } from './run-state.ts';

const allLineBreaks = /[\u2028\u2029\u0085]/g;
/** Three searches by V8's own means: a pattern takes twice as long for a short text, and forty times for a long one. */
const hasBreaks = (json: string): boolean =>
  json.includes('\u2028') || json.includes('\u2029') || json.includes('\u0085');

// They only occur inside JSON strings, so escaping them does not change the value.
const escapeBreaks = (json: string): string =>
  hasBreaks(json)
    ? json.replace(allLineBreaks, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : json;

/**
 * Makes one text of the pieces that it was joined from. V8 keeps a joined text as a tree, in more memory, and each text that
 * begins with it walks the tree again: 120 ns a token for a head of twelve pieces.
 */
export function flat(text: string): string {
  // V8 joins the pieces when a character is read. The result has to depend on it: from Node 22 on, optimized code leaves out
  // a `charCodeAt` whose value is not used, and a stored message took twice the memory.
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
 * Runs that have nothing but them are concatenated, in less than a tenth of the time of JSON.stringify. For lines only, which
 * are soon written: V8 keeps a concatenated text in pieces, which take more memory.
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

/** The head as a pattern: V8 takes 25 ns for it, and some 150 ns for `startsWith`, which compares by character. */
export const headPattern = tokenHead.replace(/[{.]/g, '\\$&');
const hasHead = new RegExp(`^${headPattern}`);
/** A whole line whose content has nothing escaped. */
const isPlainToken = new RegExp(`^${headPattern}[^"\\\\]*${tokenTail}$`);
/** Characters of a line up to which its content is searched by a pattern; for long ones, `indexOf` is faster. */
const shortLine = 300;

/**
 * Whether a line is a plain token's, which protocols put into their own JSON without parsing it. The head alone would not
 * tell: a plain text part with more fields, such as metadata, begins alike, so the content has to end where the tail begins.
 */
function isToken(line: string): boolean {
  if (line.length < shortLine && isPlainToken.test(line)) return true;
  if (!hasHead.test(line)) return false;
  let quote = line.indexOf('"', tokenHead.length);
  while (isEscaped(line, quote)) quote = line.indexOf('"', quote + 1);
  return quote === line.length - tokenTail.length;
}

/** The content of a plain token's line as JSON, quotes included. Undefined for any other line. */
export const tokenIn = (line: string): string | undefined =>
  isToken(line) ? line.slice(tokenHead.length - 1, 1 - tokenTail.length) : undefined;

/** As `tokenIn`, without the quotes. */
export const insideToken = (line: string): string | undefined =>
  isToken(line) ? line.slice(tokenHead.length, -tokenTail.length) : undefined;

/** Whether an odd number of backslashes stands before a character. */
function isEscaped(line: string, at: number): boolean {
  let first = at;
  while (line[first - 1] === '\\') first -= 1;
  return (at - first) % 2 === 1;
}

// Ids, names, roles and times have no character that JSON escapes: their schemas see to that.

function encodeRun(run: Run): string {
  const { run_id, agent_name, session_id, status, output, created_at, finished_at } = run;
  if (session_id === undefined || keysOf(run) !== (finished_at === undefined ? 6 : 7)) return toLine(run);
  const head = `{"run_id":"${run_id}","agent_name":"${agent_name}","session_id":"${session_id}","status":"${status}"`;
  const end = finished_at === undefined ? '' : `,"finished_at":"${finished_at}"`;
  return `${head},"output":[${output.map(encodeMessage).join(',')}],"created_at":"${created_at}"${end}}`;
}

/** Messages that `encodeOnce` has encoded. */
let encoded: Map<Message, string> | undefined;

/**
 * Encodes each message once in all that `work` encodes, which changes no message. When a run completes, its last message is
 * in two events and in the session's history; for a long text that is a third of the time. A Run with more than its output,
 * such as its usage, is encoded anew. Kept any longer, the texts would double the memory of a run that waits.
 */
export function encodeOnce(work: () => void): void {
  const outer = encoded;
  encoded = outer ?? new Map();
  try {
    work();
  } finally {
    encoded = outer;
  }
}

/** A message as JSON, in pieces: what keeps it makes it `flat`. */
export function encodeMessage(message: Message): string {
  const json = encoded?.get(message) ?? jsonOf(message);
  encoded?.set(message, json);
  return json;
}

function jsonOf(message: Message): string {
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

const settlingEvent = new RegExp(`^\\{"type":"run\\.(?:${loggedStatuses.filter(isSettled).join('|')})"`);

/** Whether a line is a run event that settles the run: a waiting request is answered then. */
export const isSettling = (line: string | undefined): boolean => line !== undefined && settlingEvent.test(line);

const runEvent = new RegExp(`^\\{"type":"run\\.(${loggedStatuses.join('|')})"`);

/** The status in the type of a run event, or undefined for any other event. It reads only the head of the line. */
export const runEventOf = (line: string): LoggedStatus | undefined =>
  runEvent.exec(line)?.[1] as LoggedStatus | undefined;

/** Whether a message ends with the line. It has the whole text once more, which takes long to parse. */
export const endsMessage = (line: string): boolean => line.startsWith('{"type":"message.completed"');

/** A field of the line of a message that is not whole. A part may have such a field as well; a text cannot, as its quotes are escaped. */
const reasonField = '"finish_reason":"';

/** Why the message that ends with the line is not whole; undefined where it is. Lines of whole messages are not parsed. */
export const finishReasonIn = (line: string): FinishReason | undefined =>
  endsMessage(line) && line.includes(reasonField) ? JSON.parse(line).message.finish_reason : undefined;

/** The Run in the line of a run event, as JSON, without a second encoding. */
export function runInside(line: string): string {
  return line.slice(line.indexOf('"run":') + 6, -1);
}
