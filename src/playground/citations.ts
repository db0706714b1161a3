import type { CitationMetadata } from '../schema/message.ts';

export interface NumberedCitation {
  /** From 1, in order of arrival. */
  readonly number: number;
  readonly citation: CitationMetadata;
}

/** A piece of text that is cited or not, and the citation marks that follow it. */
export interface TextPiece {
  readonly text: string;
  readonly cited: boolean;
  readonly marks: readonly NumberedCitation[];
}

/** The citations of a message, by their position in its text. */
export class Citations {
  /** Those without a position as well. */
  readonly all: readonly NumberedCitation[];
  readonly #positioned: readonly NumberedCitation[];

  constructor(citations: readonly CitationMetadata[]) {
    this.all = citations.map((citation, index) => ({ number: index + 1, citation }));
    this.#positioned = this.all.filter(({ citation }) => citation.end_index !== undefined);
  }

  /**
   * Splits a text that begins at position `from` of the message where citations begin and end. Citations that end after
   * `since`, in Markdown syntax before the text, are marked at its beginning.
   */
  split(from: number, text: string, since = from): TextPiece[] {
    const to = from + text.length;
    const edges = this.#positioned
      .flatMap(({ citation: { start_index = 0, end_index = 0 } }) => [start_index, end_index])
      .filter((edge) => edge > from && edge < to);
    const positions = [...new Set([from, ...edges, to])].sort((a, b) => a - b);
    return positions.slice(1).map((end, index) => {
      const begin = positions[index] ?? from;
      return {
        text: text.slice(begin - from, end - from),
        cited: this.#positioned.some(
          ({ citation: { start_index = 0, end_index = 0 } }) => start_index < end && begin < end_index,
        ),
        marks: this.#positioned.filter(
          ({ citation: { end_index = 0 } }) => (index === 0 ? since : begin) < end_index && end_index <= end,
        ),
      };
    });
  }
}
