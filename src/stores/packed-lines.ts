import { headPattern, tokenHead, tokenTail } from '../core/encode.ts';

/** Begins a packed line. No JSON begins with it. */
const mark = '+';
/** The lines of tokens in a text of lines; a line has no line break of any kind. */
const tokens = new RegExp(`${headPattern}(.*)${tokenTail}$`, 'gm');
/** Average characters of lines from which on packing costs more, for the search and the copy, than it saves. */
const longLines = 4 * 1024;

const unpack = (line: string): string =>
  line.startsWith(mark) ? tokenHead + line.slice(mark.length) + tokenTail : line;

/**
 * The lines of events as one text. Of a token it has only the content: the rest is the same in all tokens, four fifths
 * of a short one, and would be kept, copied or written once for each.
 */
export function packLines(lines: readonly string[]): string {
  const text = lines.join('\n');
  return text.length < longLines * lines.length ? text.replace(tokens, `${mark}$1`) : text;
}

export const unpackLines = (text: string): string[] => text.split('\n').map(unpack);
