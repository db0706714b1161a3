import type { CitationMetadata } from '../../schema/message.ts';

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

const safeUrl = (url: string | undefined): string | undefined =>
  url !== undefined && /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined;

const nameOf = ({ title, description, url }: CitationMetadata): string =>
  title ?? url ?? description ?? 'Source without a name';

/** The number of a citation in the text. It leads to the source below the message. */
export function CitationMark({ number, citation, list }: NumberedCitation & { readonly list: string }) {
  return (
    <sup>
      <button
        type="button"
        title={nameOf(citation)}
        aria-label={`Source ${number}: ${nameOf(citation)}`}
        onClick={() => document.getElementById(`${list}-${number}`)?.focus()}
      >
        {number}
      </button>
    </sup>
  );
}

/** The sources of a message, as links where they have a web address. `list` is the id that marks refer to. */
export function Sources({ sources, list }: { sources: readonly NumberedCitation[]; list: string }) {
  if (sources.length === 0) return null;
  return (
    <ol class="sources stack" aria-label="Sources">
      {sources.map(({ number, citation }) => (
        <li key={number}>
          <Source citation={citation} id={`${list}-${number}`} />
        </li>
      ))}
    </ol>
  );
}

function Source({ citation, id }: { citation: CitationMetadata; id: string }) {
  const { description, url } = citation;
  const href = safeUrl(url);
  const name = nameOf(citation);
  return (
    <>
      {href === undefined ? (
        <span id={id} tabIndex={-1}>
          {name}
        </span>
      ) : (
        <a id={id} href={href} target="_blank" rel="noopener noreferrer">
          {name}
        </a>
      )}
      {href !== undefined && <span class="note"> · {new URL(href).host}</span>}
      {description !== undefined && description !== name && <p class="note">{description}</p>}
    </>
  );
}
