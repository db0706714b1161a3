import type { CitationMetadata } from '../../schema/message.ts';
import type { NumberedCitation } from '../citations.ts';

const safeUrl = (url: string | undefined): string | undefined =>
  url !== undefined && /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined;

const nameOf = ({ title, description, url }: CitationMetadata): string => title ?? description ?? url ?? 'unnamed';

/** The number of a citation in the text. It leads to the source below the message. */
export function CitationMark({ number, citation, list }: NumberedCitation & { readonly list: string }) {
  return (
    <sup class="cite">
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
    <ol class="sources" aria-label="Sources">
      {sources.map(({ number, citation }) => (
        <li key={number}>
          <Source citation={citation} id={`${list}-${number}`} />
        </li>
      ))}
    </ol>
  );
}

function Source({ citation, id }: { citation: CitationMetadata; id: string }) {
  const { title, description, url } = citation;
  const href = safeUrl(url);
  const name = title ?? url ?? description ?? 'Source without a name';
  return (
    <>
      {href === undefined ? (
        <span class="name" id={id} tabIndex={-1}>
          {name}
        </span>
      ) : (
        <a class="name" id={id} href={href} target="_blank" rel="noopener noreferrer">
          {name}
        </a>
      )}
      {href !== undefined && <span class="host"> · {new URL(href).host}</span>}
      {description !== undefined && description !== name && <span class="about-source">{description}</span>}
    </>
  );
}
