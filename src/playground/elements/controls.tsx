import type { ComponentChildren, HTMLAttributes, Ref } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { RunStatus } from '../../client/client.ts';
import { formatNumber } from './format.ts';

const paths = {
  send: 'M4 12l16-8-6 16-3-7z',
  stop: 'M7 7h10v10H7z',
  attach: 'M8 12l6-6a3 3 0 0 1 4.5 4.5L10 19a5 5 0 0 1-7-7l8-8',
  close: 'M6 6l12 12M18 6L6 18',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  down: 'M12 4v12M7 11l5 5 5-5M5 20h14',
  agents:
    'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 19c0-3 2.500-5 5.500-5s5.500 2 5.500 5M16 11a2.500 2.500 0 1 0 0-5M17 14c2.600.3 4.500 2.200 4.500 5',
  chat: 'M4 5h16v11H9l-5 4z',
  inspect: 'M3 13h4l3-8 4 14 3-6h4',
  runs: 'M4 6h16M4 12h16M4 18h10',
  awaiting:
    'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M12 16.500v.1',
  logo: 'M3 7c3-3 6-3 9 0s6 3 9 0M3 13c3-3 6-3 9 0s6 3 9 0M3 19c3-3 6-3 9 0s6 3 9 0',
} as const;

/** Decorative: screen readers skip it, because text beside it says the same. */
export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** Milliseconds for which the confirmation is shown. */
const confirmation = 1_500;

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), confirmation);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={copied ? `Copied: ${label}` : label}
      onClick={() => void copy(text()).then(setCopied)}
    >
      <Icon name="copy" />
      <span role="status">{copied ? 'Copied' : ''}</span>
    </button>
  );
}

// Browsers have navigator.clipboard on https and localhost only; execCommand works elsewhere.
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const box = document.createElement('textarea');
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}

export interface ScrollBoxProps extends Omit<HTMLAttributes<HTMLElement>, 'label'> {
  readonly label: string;
  readonly box?: Ref<HTMLElement>;
  readonly children: ComponentChildren;
}

/** A scrollable area that the keyboard can focus and scroll. */
export const ScrollBox = ({ label, box, children, ...rest }: ScrollBoxProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard could not scroll.
  <section {...rest} aria-label={label} tabIndex={0} {...(box && { ref: box })}>
    {children}
  </section>
);

export function StatusBadge({ status }: { status: RunStatus }) {
  return (
    <span class="badge" data-status={status}>
      {status}
    </span>
  );
}

export interface FilterBarProps {
  readonly label: string;
  readonly options: readonly { readonly label: string }[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
  /** Buttons of their own after these. */
  readonly children?: ComponentChildren;
}

/** Buttons of which one is selected. */
export const FilterBar = ({ label, options, selected, onSelect, children }: FilterBarProps) => (
  <fieldset class="filters row">
    <legend class="unseen">{label}</legend>
    {options.map((option, index) => (
      <button key={option.label} type="button" aria-pressed={index === selected} onClick={() => onSelect(index)}>
        {option.label}
      </button>
    ))}
    {children}
  </fieldset>
);

/** The description and validity of a field, for screen readers. */
export interface FieldAria {
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

export interface MessageBoxProps {
  readonly label?: string;
  readonly id?: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly aria?: FieldAria;
}

/** Maximum height in lines. */
const maxRows = 8;

/** A text area: Enter submits its form, Shift+Enter starts a new line. */
export const MessageBox = ({ label, id, placeholder, value, onInput, aria }: MessageBoxProps) => (
  <textarea
    {...aria}
    id={id}
    aria-label={label}
    placeholder={placeholder}
    rows={Math.min(value.split('\n').length, maxRows)}
    value={value}
    onInput={({ currentTarget }) => onInput(currentTarget.value)}
    onKeyDown={(event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      event.currentTarget.form?.requestSubmit();
    }}
  />
);

/** What is wrong with what a person has entered; screen readers read it at once. */
export const Problems = ({ texts }: { texts: readonly string[] }) => (
  <>
    {texts.map((text) => (
      <p key={text} class="problem" role="alert">
        {text}
      </p>
    ))}
  </>
);

/** The newest entries of a list, the index of the first of them, and a button that adds older ones. */
export function useNewest<T>(
  all: readonly T[],
  pageSize: number,
  nameOf: (count: number) => string = (count) => `Older (${formatNumber(count)})`,
) {
  const [shown, setShown] = useState(pageSize);
  const first = Math.max(0, all.length - shown);
  const older = first > 0 && (
    <button type="button" class="quiet" onClick={() => setShown(shown + pageSize)}>
      {nameOf(first)}
    </button>
  );
  return { newest: all.slice(first), first, older };
}

interface FoldProps {
  /** A function gets whether the fold is open. */
  readonly summary: ComponentChildren | ((isOpen: boolean) => ComponentChildren);
  /** The class of the summary. */
  readonly class?: string;
  /** Whether it is open at first. */
  readonly isOpen?: boolean;
  readonly children: ComponentChildren;
}

/** A summary that opens. What it hides is in the page only while it is open, so a long list of them costs little. */
export function Fold({ summary, class: className, isOpen = false, children }: FoldProps) {
  const [open, setOpen] = useState(isOpen);
  return (
    <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary class={className}>{typeof summary === 'function' ? summary(open) : summary}</summary>
      {open && children}
    </details>
  );
}

interface FactsProps {
  readonly facts: readonly (readonly [term: string, fact: string | undefined])[];
  readonly class?: string;
}

/** Terms, each with what is known of it. A term without a fact is left out. */
export const Facts = ({ facts, class: className }: FactsProps) => (
  <dl class={className}>
    {facts.map(
      ([term, fact]) =>
        fact !== undefined && (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{fact}</dd>
          </div>
        ),
    )}
  </dl>
);
