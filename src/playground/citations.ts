import type { CitationMetadata } from '../schema/message.ts';

export interface Numbered {
  /** From 1, in the order in which they came. */
  readonly number: number;
  readonly citation: CitationMetadata;
}

/** A stretch of text that is cited or not, and the marks that stand after it. */
export interface Piece {
  readonly text: string;
  readonly cited: boolean;
  readonly marks: readonly Numbered[];
}

/** What a message cites, by the places in its text. */
export class Citations {
  readonly #placed: readonly Numbered[];
  /** Those that do not say what in the text they are for. */
  readonly unplaced: readonly Numbered[];

  constructor(citations: readonly CitationMetadata[]) {
    const all = citations.map((citation, at) => ({ number: at + 1, citation }));
    this.#placed = all.filter(({ citation }) => citation.end_index !== undefined);
    this.unplaced = all.filter(({ citation }) => citation.end_index === undefined);
  }

  /**
   * Cuts the text that begins at `from` of the message where citations begin and end. What ended after `since`, in
   * signs that are not shown, is marked here as well.
   */
  cut(from: number, text: string, since = from): Piece[] {
    const to = from + text.length;
    const edges = this.#placed
      .flatMap(({ citation: { start_index = 0, end_index = 0 } }) => [start_index, end_index])
      .filter((edge) => edge > from && edge < to);
    const places = [...new Set([from, ...edges, to])].sort((a, b) => a - b);
    return places.slice(1).map((end, at) => {
      const begin = places[at] ?? from;
      return {
        text: text.slice(begin - from, end - from),
        cited: this.#placed.some(
          ({ citation: { start_index = 0, end_index = 0 } }) => start_index < end && begin < end_index,
        ),
        marks: this.#placed.filter(
          ({ citation: { end_index = 0 } }) => (at === 0 ? since : begin) < end_index && end_index <= end,
        ),
      };
    });
  }
}
