/**
 * Reads a list of the store page by page, up to its end. `read` returns at most `size` items: the first ones, or those after
 * an item.
 */
export async function* pages<T>(
  size: number,
  read: (after: T | undefined, size: number) => Promise<T[]>,
): AsyncGenerator<T[], void, undefined> {
  let page: T[];
  let after: T | undefined;
  do {
    page = await read(after, size);
    if (page.length > 0) yield page;
    after = page.at(-1);
  } while (page.length === size);
}
