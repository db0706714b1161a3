import { flat } from '../../http/sse/frames.ts';

/** Characters after which what was added becomes one flat text. */
const flatChars = 1_024;

/**
 * A text that grows by a token at a time; states share it, so that it is never changed. V8 keeps a joined text as a tree
 * of its pieces, some 100 bytes a token, which the garbage collector copies while the text grows: a third of the time of
 * a token's frame. So the last pieces are made flat while they are young, at a constant cost for each character.
 */
export class GrowingText {
  readonly #flat: string;
  readonly #last: string;

  constructor(flat = '', last = '') {
    this.#flat = flat;
    this.#last = last;
  }

  add(more: string): GrowingText {
    const last = this.#last + more;
    if (last.length < flatChars) return new GrowingText(this.#flat, last);
    return new GrowingText(this.#flat + flat(last));
  }

  get whole(): string {
    return this.#flat + this.#last;
  }

  get isEmpty(): boolean {
    return this.#flat === '' && this.#last === '';
  }
}

export const noText = new GrowingText();
