import { tokenHead, tokenTail } from '../core/encode.ts';
import { headPattern } from '../core/recognize.ts';

/** Begins a packed line. No JSON begins with it. */
const mark = '+';
/** The lines of tokens in a text of lines. Not with the flag `m`: for it, lines also end at U+2028 and U+2029. */
const tokens = new RegExp(`(^|\\n)${headPattern}([^\\n]*)${tokenTail}(?=\\n|$)`, 'g');
/** Average characters of lines from which on packing costs more, for the search and the copy, than it saves. */
const longLines = 4 * 1024;
/** Characters of the line of a token without content: in a shorter one, its head and its tail would overlap. */
const leastLength = tokenHead.length + tokenTail.length;

/** Most writes of a run have no more lines; for so few, the pattern takes two to three times as long. */
const fewLines = 5;

/** As the pattern does. `insideToken` would leave out parts with more fields, which the pattern packs as well. */
const pack = (line: string): string =>
  line.length >= leastLength && line.length < longLines && line.startsWith(tokenHead) && line.endsWith(tokenTail)
    ? mark + line.slice(tokenHead.length, -tokenTail.length)
    : line;
const unpack = (line: string): string =>
  line.startsWith(mark) ? tokenHead + line.slice(mark.length) + tokenTail : line;

/**
 * The lines of events as one text. Of a token it has only the content: the rest is the same in all tokens, four fifths
 * of a short one, and would be kept, copied or written once for each.
 */
export function packLines(lines: readonly string[]): string {
  if (lines.length <= fewLines) return lines.map(pack).join('\n');
  const text = lines.join('\n');
  // Without a token, the search for its head takes a tenth of the time of the pattern.
  return text.length >= longLines * lines.length || !text.includes(tokenHead)
    ? text
    : text.replace(tokens, `$1${mark}$2`);
}

export const unpackLines = (text: string): string[] => text.split('\n').map(unpack);
