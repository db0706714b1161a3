/** Links of a text whose places are kept. */
const maxLinks = 100;

/** A link to a file in the text of an answer, which the agent's message does not have. */
interface Link {
  /** The event that has the file. */
  readonly event: number;
  /** Where the agent's message has the file, and the characters that it has there. */
  readonly at: number;
  readonly chars: number;
  /** By how many characters the link is longer. */
  readonly more: number;
}

/** The events of a message, up to the one that is read. */
interface EventRange {
  readonly since: number;
  readonly event: number;
}

/** Where a text has links. The states of a projection share it, as they share the text. */
export class LinkPlaces {
  readonly #links: Link[] = [];

  /** Takes note of a link, once. */
  add(link: Link): void {
    const last = this.#links.at(-1)?.event ?? 0;
    if (last < link.event && this.#links.length < maxLinks) this.#links.push(link);
  }

  /**
   * The place in the text of an index of the agent's message, which begins after the event `since` and is read up to
   * `event`. `shift` is that of the end of the text; a link after the index does not move it. Only the places of the first
   * hundred links are known; each further one moves all indexes.
   */
  placeOf(index: number, edge: 'start' | 'end', shift: number, { since, event }: EventRange): number {
    let place = index;
    let moved = shift;
    for (const link of this.#links) {
      if (link.event <= since || link.event > event) continue;
      const end = link.at + link.chars;
      // Within the file: the whole link is cited.
      if (place > link.at && place < end) place = edge === 'start' ? link.at : end;
      if (edge === 'start' ? place < end : place <= link.at) moved -= link.more;
    }
    return Math.max(0, place + moved);
  }
}
