/**
 * Characters from which on a write, a batch for a reader, or a page of the store is full: a slow reader keeps its page in
 * memory. A single event with as many is long, and begins each of these: readers of all positions before it then share it,
 * instead of keeping it once more for each position.
 */
export const fullChars = 16 * 1024;

/** Characters of lines. */
export function charsOf(lines: readonly string[]): number {
  let chars = 0;
  for (const { length } of lines) chars += length;
  return chars;
}
