import { useEffect, useRef, useState } from 'preact/hooks';
import type { Event, LogLine } from '../../client/client.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { FilterBar, Fold } from '../elements/controls.tsx';
import { formatClock, formatDuration } from '../elements/format.ts';
import { JsonView } from '../elements/json-view.tsx';
import { DiagnosticsNote, useDiagnostics } from './diagnostics.tsx';
import { RunAgainButton } from './run-again-button.tsx';
import { isLogLine, type LogEntry, type LoggedEvent, type RunRecord, withLogLines } from './run-record.ts';

/** Rows in the page at once, so that a run of any length costs the same to render. */
const maxRows = 150;

const filters: readonly { label: string; shows: (event: Event) => boolean }[] = [
  { label: 'All', shows: () => true },
  { label: 'Run', shows: ({ type }) => type.startsWith('run.') },
  { label: 'Messages', shows: ({ type }) => type === 'message.created' || type === 'message.completed' },
  { label: 'Parts', shows: ({ type }) => type === 'message.part' },
  { label: 'Generic', shows: ({ type }) => type === 'generic' || type === 'error' },
];

/** The times that the log can show: milliseconds of an event since the start, and of the event before it. */
const times: readonly { label: string; show: (at: number, before: number, start: number) => string }[] = [
  { label: 'Since the last', show: (at, before) => formatDuration(at - before) },
  { label: 'Since the start', show: (at) => formatDuration(at) },
  { label: 'By clock', show: (at, _, start) => formatClock(start + at) },
];

/**
 * The run's events with their times, newest last. A button adds the lines that the run's agents wrote to `context.log`.
 * Shows the newest entries; a button shows older ones.
 */
export function EventLog({ followed }: { followed: FollowedRun }) {
  const { record } = followed;
  const [filter, setFilter] = useState(0);
  const [time, setTime] = useState(0);
  const [end, setEnd] = useState<number>();
  const [withLines, setWithLines] = useState(false);
  const diagnostics = useDiagnostics(followed, withLines);
  const lines = withLines ? diagnostics.entries.value.filter(isLogLine) : [];
  const entries: readonly LogEntry[] = withLines ? withLogLines(record.events, lines) : record.events;
  const show = times[time]?.show ?? (() => '');
  const timeOf = (entry: LogEntry, before: LogEntry | undefined): string =>
    show(atOf(entry, record), before === undefined ? 0 : atOf(before, record), record.startTime);
  const list = useRef<HTMLOListElement>(null);
  const shows = filters[filter]?.shows ?? (() => true);
  const matching = entries.filter((entry) => isLogLine(entry) || shows(entry.event));
  const last = end === undefined ? matching.length : Math.min(end, matching.length);
  const first = Math.max(0, last - maxRows);
  useEffect(() => {
    // Scrolls to new events, unless older ones are shown.
    const box = list.current?.closest('.panel');
    if (end === undefined && box) box.scrollTop = box.scrollHeight;
  }, [record.eventCount, end]);
  return (
    <>
      <FilterBar label="Kinds of events" options={filters} selected={filter} onSelect={setFilter}>
        <button type="button" aria-pressed={withLines} onClick={() => setWithLines(!withLines)}>
          Log lines
        </button>
      </FilterBar>
      <FilterBar label="Times" options={times} selected={time} onSelect={setTime} />
      {withLines && (
        <DiagnosticsNote
          diagnostics={diagnostics}
          what="Lines of the log"
          empty={
            lines.length === 0 && (
              <>
                No lines. The server keeps what agents write to <code>context.log</code> where it captures content:{' '}
                <code>--capture-content on</code>.
              </>
            )
          }
        />
      )}
      {first > 0 && (
        <button type="button" class="quiet" onClick={() => setEnd(first)}>
          Older ({first})
        </button>
      )}
      {first === 0 && record.eventCount > record.events.length && (
        <p class="note">The page keeps only the newest {record.events.length} events; the server has all.</p>
      )}
      {matching.length === 0 && (
        <p class="note">{record.eventCount === 0 ? 'No events yet.' : 'No event matches the filter.'}</p>
      )}
      <ol class="events lines" ref={list}>
        {matching.slice(first, last).map((entry, index) => {
          const at = timeOf(entry, matching[first + index - 1]);
          return isLogLine(entry) ? (
            <Line key={`line ${first + index}`} line={entry} time={at} />
          ) : (
            <Row key={entry.number} run_id={record.run_id} entry={entry} time={at} />
          );
        })}
      </ol>
      {end !== undefined && (
        <button type="button" class="quiet" onClick={() => setEnd(undefined)}>
          Newest
        </button>
      )}
    </>
  );
}

/** Milliseconds since the run began. */
const atOf = (entry: LogEntry, record: RunRecord): number =>
  isLogLine(entry) ? Math.max(0, Date.parse(entry.logged_at) - record.startTime) : entry.at;

function Row({ run_id, entry, time }: { run_id: string; entry: LoggedEvent; time: string }) {
  const { number, event } = entry;
  return (
    <li data-type={event.type}>
      <Fold
        class="entry"
        summary={
          <>
            <span class="number">{number}</span>
            <span class="type">{event.type}</span>
            <code class="summary clip">{summary(event)}</code>
            <span class="time">{time}</span>
          </>
        }
      >
        <JsonView value={event} label={`event ${number}`} />
        <RunAgainButton run_id={run_id} after={number} />
      </Fold>
    </li>
  );
}

function Line({ line: { level, message, agent_name, path }, time }: { line: LogLine; time: string }) {
  return (
    <li data-level={level}>
      <div class="entry">
        <span class="number" />
        <span class="type">{level}</span>
        <span class="long">
          {path !== undefined && <code>{agent_name} </code>}
          {message}
        </span>
        <span class="time">{time}</span>
      </div>
    </li>
  );
}

/** Characters of an event's summary. */
const maxSummary = 80;

function summary(event: Event): string {
  if ('run' in event) return event.run.error?.message ?? '';
  switch (event.type) {
    case 'message.part': {
      const { name, content, content_url, metadata } = event.part;
      return (name ?? (metadata ? `${metadata.kind} ` : (content ?? content_url ?? ''))).slice(0, maxSummary);
    }
    case 'message.created':
    case 'message.completed':
      return event.message.role;
    case 'generic':
      return JSON.stringify(event.generic).slice(0, maxSummary);
    case 'error':
      return event.error.message;
    default:
      // A newer server may have more types.
      event satisfies never;
      return '';
  }
}
