import { useId, useState } from 'preact/hooks';
import type { CitationMetadata } from '../../schema/message.ts';

/** Pixels; the same as in the style sheet. */
const width = 300;

/** The number of a citation. Its source is shown while the pointer or the focus is on it, until Escape. */
export function CitationMark({ number, citation }: { number: number; citation: CitationMetadata }) {
  const id = useId();
  const [position, setPosition] = useState<{ left: number; bottom: number }>();
  const { url, title, description } = citation;
  const show = ({ currentTarget }: { currentTarget: HTMLElement }): void => {
    const { left, top } = currentTarget.getBoundingClientRect();
    setPosition({ left: Math.max(8, Math.min(left, innerWidth - width - 8)), bottom: innerHeight - top });
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside is the control; the pointer may stay on the source.
    <span class="cite" onMouseLeave={() => setPosition(undefined)}>
      <button
        type="button"
        aria-label={`Source ${number}: ${title ?? description ?? url ?? 'unnamed'}`}
        aria-describedby={position && id}
        onMouseEnter={show}
        onFocus={show}
        onBlur={() => setPosition(undefined)}
        onKeyDown={({ key }) => key === 'Escape' && setPosition(undefined)}
        onClick={() => url && safeUrl(url) && open(url, '_blank', 'noopener,noreferrer')}
      >
        {number}
      </button>
      {position !== undefined && (
        <span
          class="source"
          id={id}
          role="tooltip"
          style={{ left: `${position.left}px`, bottom: `${position.bottom}px` }}
        >
          {title !== undefined && <strong>{title}</strong>}
          {description !== undefined && <span>{description}</span>}
          {url !== undefined && <span class="url">{url}</span>}
        </span>
      )}
    </span>
  );
}

const safeUrl = (url: string): boolean => /^https?:/i.test(url);
