import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { formatNumber } from '../format.ts';
import { CopyButton } from './copy-button.tsx';

/** Levels that are open at first. */
const openLevels = 2;
/** Entries of an array or an object that are added at once. */
const pageSize = 100;
/** Characters of a text before a button shows the rest. */
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
    return <Branch name={key} value={value} level={level} />;
  }
  if (typeof value === 'string') {
    return (
      <div class="leaf">
        {key}
        <Text value={value} />
      </div>
    );
  }
  return (
    <div class="leaf">
      {key}
      <span class="literal">{JSON.stringify(value) ?? 'null'}</span>
    </div>
  );
}

interface BranchProps {
  readonly name: false | JSX.Element;
  readonly value: object;
  readonly level: number;
}

function Branch({ name, value, level }: BranchProps) {
  const [open, setOpen] = useState(level < openLevels);
  const [shown, setShown] = useState(pageSize);
  const isArray = Array.isArray(value);
  const entries = Object.entries(value);
  const rest = entries.length - shown;
  const count = `${formatNumber(entries.length)} ${isArray ? 'item' : 'key'}${entries.length === 1 ? '' : 's'}`;
  return (
    <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {name}
        <span class="size">
          {isArray ? '[ ]' : '{ }'} {count}
        </span>
      </summary>
      {open && (
        <div class="entries">
          {entries.slice(0, shown).map(([key, entry]) => (
            <JsonValue key={key} name={isArray ? undefined : key} value={entry} level={level + 1} />
          ))}
          {rest > 0 && (
            <button type="button" class="quiet" onClick={() => setShown(shown + pageSize)}>
              {formatNumber(rest)} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Text({ value }: { value: string }) {
  const [whole, setWhole] = useState(false);
  if (whole || value.length <= maxText) return <span class="text">{JSON.stringify(value)}</span>;
  return (
    <>
      <span class="text">{JSON.stringify(value.slice(0, maxText)).slice(0, -1)}…</span>
      <button type="button" class="quiet" onClick={() => setWhole(true)}>
        Show all {formatNumber(value.length)} characters
      </button>
    </>
  );
}
