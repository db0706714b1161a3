import { flat } from '../../http/sse/frames.ts';

/** Characters after which what was added becomes one flat text. */
const flatChars = 1_024;

/**
 * A text that grows with the events of a log, as the inside of a JSON string. The states of a projection share it, and so
 * do their readers: the first reader of an event adds its piece, and the others find it there. So a token makes no new
 * state. V8 keeps a joined text as a tree of its pieces, some 100 bytes a token, which the garbage collector copies while
 * the text grows: a third of the time of a token's frame. So the last pieces are made flat while they are young, at a
 * constant cost for each character.
 */
export class GrowingText {
  #event = 0;
  #flat = '';
  #last = '';

  /** Adds the piece of an event, once. A reader adds the events in order, and leaves none out. */
  add(event: number, piece: string): void {
    if (event <= this.#event) return;
    this.#event = event;
    this.#last += piece;
    if (this.#last.length < flatChars) return;
    this.#flat += flat(this.#last);
    this.#last = '';
  }

  /** The text up to the last event that any reader has read. */
  get whole(): string {
    return this.#flat + this.#last;
  }
}
