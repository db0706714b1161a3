import type { FinishReason } from '../schema/message.ts';
import { type LoggedStatus, loggedStatuses } from '../schema/statuses.ts';
import { tokenHead, tokenTail } from './encode.ts';
import { isSettled } from './run-state.ts';

// What a line that `encode` has made tells without being parsed.

/** The head of a token's line as a pattern, which is faster than `startsWith`. */
export const headPattern = tokenHead.replace(/[{.]/g, '\\$&');
const hasHead = new RegExp(`^${headPattern}`);

/**
 * Whether a line is a plain token's, which protocols put into their own JSON without parsing it. The head alone would not
 * tell: a plain text part with more fields, such as metadata, begins alike, so the content has to end where the tail begins.
 */
function isToken(line: string): boolean {
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
