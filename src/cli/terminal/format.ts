import { closest } from '../../core/closest.ts';

/**
 * Characters that control a terminal or change the order of text: C0 except line feed and tab, DEL, C1, and the controls
 * of writing direction.
 */
const controls = /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu;

/** The text without control characters. */
export const sanitize = (text: string): string => text.replace(controls, '');

/** Colours and other styles: the only sequences that the command line itself puts into a text. */
const style = new RegExp(`(${'\u001b'}\\[[\\d;]*m)`);

/** The text without control characters, except for the styles that `Terminal.paint` has put into it. */
export const sanitizePainted = (text: string): string =>
  text
    .split(style)
    .map((piece, index) => (index % 2 === 0 ? sanitize(piece) : piece))
    .join('');

/** The text on one line of at most `maxLength` characters, without control characters. */
export function oneLine(text: string, maxLength = 300): string {
  const line = text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ');
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}

/** The value as JSON on one line, safe for a terminal. `JSON.stringify` escapes C0 only. */
export const sanitizedJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/**
 * The text without the credentials in its URLs: `***` replaces user and password, and the values of parameters that are
 * named like secrets. A password that is replaced already keeps its user.
 */
export const redactCredentials = (text: string): string =>
  text
    .replace(/\/\/(?![^\s/?#@]*:\*\*\*@)[^\s/?#]*@/g, '//***@')
    .replace(/([?&][^\s=&#]*(?:pass|secret|token|key|sig|credential)[^\s=&#]*=)[^\s&#]*/gi, '$1***');

/** The text quoted as one word for a shell. */
export const shellQuote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** A time in words that fit into a line: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(milliseconds, 0) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago a time was: `just now`, `2 min ago`, `3 days ago`. */
export function formatAge(time: string, now: number): string {
  const seconds = Math.max(now - Date.parse(time), 0) / 1000;
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? '1 day ago' : `${days} days ago`;
}

/** ` (did you mean …?)`, or the names there are. Empty if there is nothing to suggest. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const similar = closest(word, candidates);
  if (similar !== undefined) return ` Did you mean ${similar}?`;
  return candidates.length === 0 ? '' : ` There are: ${oneLine(candidates.join(', '))}.`;
}
