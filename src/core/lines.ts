/**
 * Characters from which on a write, or a batch for a reader, is full: a slow reader keeps its batch in memory. An event of
 * that length begins a page of the store, so that readers of all positions before it share that page. Redis and PostgreSQL
 * count bytes, which are never fewer.
 */
export const fullChars = 16 * 1024;

/** The number of characters of all lines. */
export function charsOf(lines: readonly string[]): number {
  let chars = 0;
  for (const { length } of lines) chars += length;
  return chars;
}
