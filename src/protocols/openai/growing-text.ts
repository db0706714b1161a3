import { flat } from '../../http/sse/frames.ts';

/** Characters after which what was added becomes one flat text. */
const flatChars = 1_024;
/** Links of a text whose places are kept. */
const maxLinks = 100;

/** A link to a file, which the agent's message does not have. */
interface Link {
  readonly event: number;
  /** Where the agent's message has the file, and the characters that it has there. */
  readonly at: number;
  readonly chars: number;
  /** By how many characters the link is longer. */
  readonly more: number;
}

/**
 * A text that grows with the events of a log, as the inside of a JSON string. The states of a projection share it, and so
 * do their readers: the first reader of an event adds its piece, and the others find it there. So a token makes no new
 * state. V8 keeps a joined text as a tree of its pieces, some 100 bytes a token, which the garbage collector copies while
 * the text grows: a third of the time of a token's frame. So the last pieces are made flat while they are young, at a
 * constant cost for each character.
 */
export class GrowingText {
  readonly #keeps: boolean;
  readonly #links: Link[] = [];
  #event = 0;
  #flat = '';
  #flatChars = 0;
  #last = '';

  /** `keeps`: whether the text is kept; otherwise its characters are counted, and `whole` has no more than the end. */
  constructor(keeps = true) {
    this.#keeps = keeps;
  }

  /** Adds the piece of an event, once. A reader adds the events in order, and leaves none out. */
  add(event: number, piece: string): void {
    if (event <= this.#event) return;
    this.#event = event;
    this.#last += piece;
    if (this.#last.length < flatChars) return;
    const last = flat(this.#last);
    this.#flatChars += charsOf(last);
    if (this.#keeps) this.#flat += last;
    this.#last = '';
  }

  /**
   * Takes note of a link with which the piece of an event ends, once. `chars`: the characters of the agent's message in
   * its place. `shift`: what an index of the agent's message is short of one of this text, before the link.
   */
  addLink(event: number, link: string, chars: number, shift: number): void {
    if (event !== this.#event || this.#links.at(-1)?.event === event || this.#links.length === maxLinks) return;
    this.#links.push({ event, at: this.chars - link.length - shift, chars, more: link.length - chars });
  }

  /**
   * The place in this text of an index of the agent's message, which begins after the event `since` and is read up to
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

  /** The text up to the last event that any reader has read. */
  get whole(): string {
    return this.#flat + this.#last;
  }

  /** The characters of that text. */
  get chars(): number {
    return this.#flatChars + charsOf(this.#last);
  }
}

interface EventRange {
  readonly since: number;
  readonly event: number;
}

/** The characters of a text that is the inside of a JSON string. */
const charsOf = (text: string): number => (text.includes('\\') ? JSON.parse(`"${text}"`).length : text.length);
