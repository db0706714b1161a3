import { useId, useState } from 'preact/hooks';
import type { CitationMetadata } from '../../schema/message.ts';

/** Pixels; as the style sheet has it. */
const width = 300;

/** A number in the text; its source is shown while the pointer or the focus is on it, until Escape. */
export function CitationMark({ number, citation }: { number: number; citation: CitationMetadata }) {
  const id = useId();
  const [place, setPlace] = useState<{ left: number; bottom: number }>();
  const { url, title, description } = citation;
  const show = ({ currentTarget }: { currentTarget: HTMLElement }): void => {
    const { left, top } = currentTarget.getBoundingClientRect();
    setPlace({ left: Math.max(8, Math.min(left, innerWidth - width - 8)), bottom: innerHeight - top });
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button in it is what is operated; the pointer may stay on the source.
    <span class="cite" onMouseLeave={() => setPlace(undefined)}>
      <button
        type="button"
        aria-label={`Source ${number}: ${title ?? description ?? url ?? 'unnamed'}`}
        aria-describedby={place && id}
        onMouseEnter={show}
        onFocus={show}
        onBlur={() => setPlace(undefined)}
        onKeyDown={({ key }) => key === 'Escape' && setPlace(undefined)}
        onClick={() => url && safeUrl(url) && open(url, '_blank', 'noopener,noreferrer')}
      >
        {number}
      </button>
      {place !== undefined && (
        <span class="source" id={id} role="tooltip" style={{ left: `${place.left}px`, bottom: `${place.bottom}px` }}>
          {title !== undefined && <strong>{title}</strong>}
          {description !== undefined && <span>{description}</span>}
          {url !== undefined && <span class="url">{url}</span>}
        </span>
      )}
    </span>
  );
}

const safeUrl = (url: string): boolean => /^https?:/i.test(url);
