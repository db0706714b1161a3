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
 * the same millisecond, and a run alone on its server in three of them: V8 takes more than a microsecond to format a date,
 * so that is done once a second.
 */
export function wireClock(read: () => number): () => string {
  let [last, text] = [Number.NaN, ''];
  let [lastSecond, head] = [Number.NaN, ''];
  return () => {
    const now = read();
    if (now === last) return text;
    const second = Math.floor(now / 1_000);
    if (second !== lastSecond) [lastSecond, head] = [second, new Date(second * 1_000).toISOString().slice(0, -4)];
    const milliseconds = Math.floor(now - second * 1_000);
    [last, text] = [now, `${head}${String(milliseconds).padStart(3, '0')}Z`];
    return text;
  };
}
