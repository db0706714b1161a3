import { flat } from '../../core/encode.ts';

/** Characters after which what was added becomes one flat text. */
const flatChars = 1_024;

/**
 * A text that grows with the events of a log, as the inside of a JSON string. The states of one reader share the text, so
 * that a token makes no new state. The last pieces are made one flat text now and then: see `flat`.
 */
export class GrowingText {
  readonly #keeps: boolean;
  #flat = '';
  #flatChars = 0;
  #last = '';

  /** `keeps`: whether the text is kept; otherwise its characters are counted, and `whole` has no more than the end. */
  constructor(keeps = true) {
    this.#keeps = keeps;
  }

  add(piece: string): void {
    this.#last += piece;
    if (this.#last.length < flatChars) return;
    const last = flat(this.#last);
    this.#flatChars += charsOf(last);
    if (this.#keeps) this.#flat += last;
    this.#last = '';
  }

  get whole(): string {
    return this.#flat + this.#last;
  }

  get chars(): number {
    return this.#flatChars + charsOf(this.#last);
  }
}

/** The characters of a text that is the inside of a JSON string. */
const charsOf = (text: string): number => (text.includes('\\') ? JSON.parse(`"${text}"`).length : text.length);
