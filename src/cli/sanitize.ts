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
