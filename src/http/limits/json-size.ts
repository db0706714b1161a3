import { fail } from '../../core/errors.ts';
import { maxDepth } from '../../core/json.ts';

/** Members of one object. In a large object, each member costs V8 ten times as much as in a small one. */
const maxMembers = 1_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the values of JSON text on arrival, before it is parsed: a body of 10 MiB may have millions of values, and
 * parsing and copying them would block the event loop for seconds. It costs 2 ns a byte, spread over the chunks. It
 * counts commas and brackets outside of strings, and leaves invalid JSON to the parser.
 */
export class JsonSize {
  readonly #maxValues: number;
  /** Members so far of the object at each open level; -1 where the level is a list. */
  readonly #members: number[] = [];
  #values = 1;
  #inString = false;
  #escaped = false;

  constructor(maxValues: number) {
    this.#maxValues = maxValues;
  }

  /** @throws RivuletError `body_too_deep`, `too_many_values`, `too_many_members` */
  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#inString) at = this.#endOfString(bytes, at);
      else this.#visit(bytes[at]);
    }
  }

  /** Index of the end of the string that continues at `from`, or of the chunk. */
  #endOfString(bytes: Uint8Array, from: number): number {
    let at = from;
    if (this.#escaped) {
      this.#escaped = false;
      at += 1;
    }
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === backslash) at += 1;
      else if (byte === quote) {
        this.#inString = false;
        return at;
      }
    }
    // One past the end: the byte after a backslash is in the next chunk.
    this.#escaped = at > bytes.length;
    return at;
  }

  #visit(byte: number | undefined): void {
    if (byte === quote) this.#inString = true;
    else if (byte === comma) this.#next();
    else if (byte === openList || byte === openObject) this.#enter(byte === openObject);
    else if (byte === closeList || byte === closeObject) this.#members.pop();
  }

  #enter(isObject: boolean): void {
    this.#count();
    if (this.#members.length === maxDepth) throw fail('body_too_deep', maxDepth);
    this.#members.push(isObject ? 1 : -1);
  }

  #next(): void {
    this.#count();
    const level = this.#members.length - 1;
    const members = this.#members[level] ?? -1;
    if (members < 0) return;
    if (members === maxMembers) throw fail('too_many_members', maxMembers);
    this.#members[level] = members + 1;
  }

  #count(): void {
    this.#values += 1;
    if (this.#values > this.#maxValues) throw fail('too_many_values', this.#maxValues);
  }
}
