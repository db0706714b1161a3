/**
 * Characters that make a terminal do something other than show them, or that show text in another order than it has: C0
 * except line feed and tab, DEL, C1, and the controls of writing direction.
 */
const unprintable = /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu;

/** The text without them. */
export const printable = (text: string): string => text.replace(unprintable, '');

/** The text as one line that fits: what is longer is not for reading on the way. */
export function oneLine(text: string, most = 300): string {
  const line = text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** The value as JSON on one line that any terminal may show: JSON itself escapes C0 only. */
export const printableJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The text with the user and the password of each URL in it hidden. */
export const withoutPasswords = (text: string): string => text.replace(/\/\/[^\s/?#]*@/g, '//***@');

/** A word as a shell takes it, whatever it has in it. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
