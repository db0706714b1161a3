/** Merges the lists of several parts into one, by ids, which are ordered by time. */
export const newestFirst = <Name extends string, Item extends Readonly<Record<Name, string>>>(
  lists: readonly (readonly Item[])[],
  id: Name,
  limit: number,
): Item[] =>
  lists
    .flat()
    .sort((a, b) => (a[id] < b[id] ? 1 : -1))
    .slice(0, limit);

/** Adds the numbers of several parts. The sum is not infinite: readers could not parse that. */
export const sum = (numbers: readonly number[]): number =>
  Math.min(
    Number.MAX_VALUE,
    numbers.reduce((total, one) => total + one, 0),
  );
