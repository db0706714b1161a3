/** Links of a message whose places are kept. */
const maxLinks = 100;

/** A link to a file in the text of an answer, which the agent's message does not have. */
export interface Link {
  /** Where the agent's message has the file, and the characters that it has there. */
  readonly at: number;
  readonly chars: number;
  /** By how many characters the link is longer. */
  readonly more: number;
}

export const withLink = (links: readonly Link[], link: Link): readonly Link[] =>
  links.length < maxLinks ? [...links, link] : links;

/**
 * The place in the text of an index of the agent's message, which has these links. `shift` is the difference between
 * the two indexes at the end of the text. A link after the index does not move the place. Only the first hundred links are known; each further one moves all indexes.
 */
export function placeOf(links: readonly Link[], index: number, edge: 'start' | 'end', shift: number): number {
  let place = index;
  let moved = shift;
  for (const link of links) {
    const end = link.at + link.chars;
    // Within the file: the whole link is cited.
    if (place > link.at && place < end) place = edge === 'start' ? link.at : end;
    if (edge === 'start' ? place < end : place <= link.at) moved -= link.more;
  }
  return Math.max(0, place + moved);
}
