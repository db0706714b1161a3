import { hasTokenHead, tokenHead } from '../core/encode.ts';

const tail = '"}}';
/** Begins a packed line. No JSON begins with it. */
const mark = '+';
/** Characters of a line from which on packing costs more, for the copy of its content, than it saves. */
const longLine = 4 * 1024;

const pack = (line: string): string =>
  line.length < longLine && hasTokenHead(line) && line.endsWith(tail)
    ? mark + line.slice(tokenHead.length, -tail.length)
    : line;

const unpack = (line: string): string => (line.startsWith(mark) ? tokenHead + line.slice(mark.length) + tail : line);

/**
 * The lines of events as one text. Of a token it has only the content: the rest is the same in all tokens, four fifths
 * of a short one, and would be kept, copied or written once for each.
 */
export const packLines = (lines: readonly string[]): string => lines.map(pack).join('\n');

export const unpackLines = (text: string): string[] => text.split('\n').map(unpack);
