import { fail } from '../../core/errors.ts';
import { maxDepth } from '../../core/json.ts';

/** Members of one object. In a large object, each member costs V8 ten times as much as in a small one. */
const maxMembers = 1_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the values of JSON text before it is parsed: a body of 10 MiB may have millions of values, and parsing and
 * copying them would block the event loop for seconds. The function counts commas and brackets outside of strings, and
 * leaves invalid JSON to the parser.
 * @throws RivuletError `body_too_deep`, `too_many_values`, `too_many_members`
 */
export function checkJsonSize(text: string, maxValues: number): void {
  /** Members so far of the object at each open level; -1 where the level is a list. */
  const members: number[] = [];
  let values = 1;
  const countValue = (): void => {
    values += 1;
    if (values > maxValues) throw fail('too_many_values', maxValues);
  };
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at + 1);
    else if (code === comma) {
      countValue();
      const level = members.length - 1;
      const before = members[level] ?? -1;
      if (before === maxMembers) throw fail('too_many_members', maxMembers);
      if (before > 0) members[level] = before + 1;
    } else if (code === openList || code === openObject) {
      countValue();
      if (members.length === maxDepth) throw fail('body_too_deep', maxDepth);
      members.push(code === openObject ? 1 : -1);
    } else if (code === closeList || code === closeObject) members.pop();
  }
}

/** Index of the quote that ends a string, or of the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === backslash) at += 1;
    else if (code === quote) return at;
  }
  return text.length;
}
