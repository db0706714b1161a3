/** Milliseconds since 1970; 0 where there is no time. */
export const timestamp = (text: string | undefined): number => Date.parse(text ?? '') || 0;

/** The score of a time in a sorted set. @throws RangeError where the text is no time */
export function score(text: string | null): number | undefined {
  const time = text === null ? undefined : Date.parse(text);
  if (Number.isNaN(time)) throw new RangeError(`expected an ISO time; got "${text}"`);
  return time;
}
