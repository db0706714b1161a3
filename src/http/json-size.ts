import { fail } from '../core/errors.ts';
import { maxDepth } from '../core/json.ts';

/** Members of one object: a large object costs V8 ten times as much a member as a small one. */
const maxMembers = 1_000;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Measures JSON text while it arrives, before it is parsed: a body of 10 MiB may hold millions of values, and to parse
 * and copy those would block the event loop for seconds. It costs 2 ns a byte, in the turns in which the bytes come.
 * It looks at commas and brackets outside of strings only; text that is no JSON is left to the parser.
 */
export class JsonSize {
  readonly #maxValues: number;
  /** The members of the object at each open level so far; -1 where the level is a list. */
  readonly #members: number[] = [];
  #values = 1;
  #inText = false;
  #escaped = false;

  constructor(maxValues: number) {
    this.#maxValues = maxValues;
  }

  /** @throws RivuletError `body_too_deep`, `too_many_values`, `too_many_members` */
  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#inText) at = this.#endOfText(bytes, at);
      else this.#mark(bytes[at]);
    }
  }

  /** Where the text ends that goes on at `from`, or the bytes do. */
  #endOfText(bytes: Uint8Array, from: number): number {
    let at = from;
    if (this.#escaped) {
      this.#escaped = false;
      at += 1;
    }
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === backslash) at += 1;
      else if (byte === quote) {
        this.#inText = false;
        return at;
      }
    }
    // One past the end: the byte after a backslash is in the next piece.
    this.#escaped = at > bytes.length;
    return at;
  }

  #mark(byte: number | undefined): void {
    if (byte === quote) this.#inText = true;
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
