import type { Diagnostic, LogLine } from '../client/client.ts';
import type { LoggedEvent } from './run-record.ts';

export type LogEntry = LoggedEvent | LogLine;

export const isLogLine = (entry: LogEntry | Diagnostic): entry is LogLine => 'kind' in entry && entry.kind === 'log';

/** Events with the lines of the agent's log in their places: each after the event that was the last one when it was written. */
export function withLogLines(events: readonly LoggedEvent[], lines: readonly LogLine[]): LogEntry[] {
  const entries: LogEntry[] = [];
  const first = events[0]?.number ?? 1;
  // The page keeps the newest events only. Lines before them have no place.
  let next = first === 1 ? 0 : lines.findIndex(({ at }) => at >= first);
  if (next < 0) next = lines.length;
  for (const event of events) {
    for (; next < lines.length; next += 1) {
      const line = lines[next];
      if (line === undefined || line.at >= event.number) break;
      entries.push(line);
    }
    entries.push(event);
  }
  return [...entries, ...lines.slice(next)];
}
