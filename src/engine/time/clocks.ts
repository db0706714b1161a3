/**
 * Returns a clock in milliseconds since 1970 that goes on where the system's clock is set back. Something that is due in a
 * second is then due in a second, not in an hour and a second. Where the system's clock is set forward, this one follows.
 */
export function steadyClock(): () => number {
  let [time, readAt] = [Date.now(), performance.now()];
  return () => {
    const now = performance.now();
    time = Math.max(Date.now(), time + now - readAt);
    readAt = now;
    return Math.floor(time);
  };
}

/**
 * The time as the wire has it, such as `2026-01-01T00:00:00.000Z`, from a clock in milliseconds since 1970. Many runs ask in
 * the same millisecond, so its text is kept.
 */
export function wireClock(read: () => number): () => string {
  let [last, text] = [Number.NaN, ''];
  return () => {
    const now = read();
    if (now !== last) [last, text] = [now, new Date(now).toISOString()];
    return text;
  };
}
