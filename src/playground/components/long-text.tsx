import { useState } from 'preact/hooks';
import { formatNumber } from '../format.ts';

/** Characters of a text before a button shows more, and those that each click adds. */
const firstChars = 1_500;
const moreChars = 100_000;

/** A text as it is, of which the page shows a part at a time. */
export function LongText({ text }: { text: string }) {
  const [shown, setShown] = useState(firstChars);
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
