import { useState } from 'preact/hooks';
import { CopyButton, Fold } from './controls.tsx';
import { formatNumber } from './format.ts';

/** Levels that are open at first. */
const openLevels = 2;
/** Entries of an array or an object that are added at once. */
const pageSize = 100;
/** Characters of a text before a button shows more. */
const maxText = 400;

/** A JSON value that can be folded and copied. Folded parts are not in the page, so a large value costs little. */
export function JsonView({ value, label, heading }: { value: unknown; label: string; heading?: string }) {
  return (
    <div class="json">
      {heading !== undefined && <p class="heading">{heading}</p>}
      <CopyButton label={`Copy ${label} as JSON`} text={() => JSON.stringify(value, null, 2) ?? 'null'} />
      <JsonValue value={value} level={0} />
    </div>
  );
}

interface NodeProps {
  /** The key in the object around it; elements of arrays have none. */
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly level: number;
}

function JsonValue({ name, value, level }: NodeProps) {
  const key = name !== undefined && <span class="key">{JSON.stringify(name)}: </span>;
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) {
    return (
      <Fold
        summary={
          <>
            {key}
            <span class="size">{sizeOf(value)}</span>
          </>
        }
        isOpen={level < openLevels}
      >
        <Entries value={value} level={level + 1} />
      </Fold>
    );
  }
  return (
    <div class="leaf">
      {key}
      {typeof value === 'string' ? (
        <LongText text={JSON.stringify(value)} first={maxText} />
      ) : (
        <span class="literal">{JSON.stringify(value) ?? 'null'}</span>
      )}
    </div>
  );
}

/** `{ } 3 keys` */
function sizeOf(value: object): string {
  const count = Object.keys(value).length;
  const [brackets, one] = Array.isArray(value) ? ['[ ]', 'item'] : ['{ }', 'key'];
  return `${brackets} ${formatNumber(count)} ${count === 1 ? one : `${one}s`}`;
}

function Entries({ value, level }: { value: object; level: number }) {
  const [shown, setShown] = useState(pageSize);
  const entries = Object.entries(value);
  const rest = entries.length - shown;
  return (
    <div class="entries">
      {entries.slice(0, shown).map(([key, entry]) => (
        <JsonValue key={key} name={Array.isArray(value) ? undefined : key} value={entry} level={level} />
      ))}
      {rest > 0 && (
        <button type="button" class="quiet" onClick={() => setShown(shown + pageSize)}>
          {formatNumber(rest)} more
        </button>
      )}
    </div>
  );
}

/** Characters that each click adds to a text. */
const moreChars = 100_000;

/** A text as it is, of which the page shows a part at a time; `first` characters at first. */
export function LongText({ text, first = 1_500 }: { text: string; first?: number }) {
  const [shown, setShown] = useState(first);
  if (text.length <= shown) return <span class="long">{text}</span>;
  const left = text.length - shown;
  return (
    <span class="long">
      {text.slice(0, shown)}…{' '}
      <button type="button" class="quiet" onClick={() => setShown(shown + moreChars)}>
        Show {formatNumber(Math.min(left, moreChars))} more of {formatNumber(text.length)} characters
      </button>
    </span>
  );
}
