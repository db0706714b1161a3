/**
 * Adds to a list that the caller owns, and returns the list; an empty one is replaced. To push onto an empty array
 * makes room for 17, and most lists of a run have one entry: a message, its part, a reader.
 */
export function append<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}
