/** `12 ms`, `3.4 s`, `2 min 05 s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1) return '<1 ms';
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds >= 3_600) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** `now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. */
export const formatAge = (milliseconds: number): string =>
  milliseconds < 1_000 ? 'now' : `${formatSpan(milliseconds)} ago`;

/** The largest unit only: `12 s`, `3 min`, `5 h`, `2 d`. */
export function formatSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** `640 B`, `12 kB`, `3.4 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(0)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** `1,234` and `12.3`. */
export const formatNumber = (value: number): string =>
  value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 1 : 0 });

/** `14:05:09` for today; with the date for other days. */
export function formatTime(time: string): string {
  const date = new Date(time);
  const clock = date.toLocaleTimeString('en-GB');
  return date.toDateString() === new Date().toDateString() ? clock : `${dateOf(date)} ${clock}`;
}

/** `2026-03-01 14:05:09.120`, in the browser's time zone. */
export const formatExact = (time: string): string => `${dateOf(new Date(time))} ${formatClock(Date.parse(time))}`;

/** `14:05:09.120`, of milliseconds since 1970. */
export const formatClock = (time: number): string =>
  new Date(time).toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
  });

// Swedish dates are written as ISO 8601 has them; `toISOString` would have the day of UTC.
const dateOf = (date: Date): string => date.toLocaleDateString('sv-SE');
