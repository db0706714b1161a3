import { useEffect, useRef, useState } from 'preact/hooks';
import type { Event } from '../../client/client.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatClock, formatDuration } from '../format.ts';
import type { LoggedEvent } from '../run-record.ts';
import { FilterBar } from './filter-bar.tsx';
import { JsonView } from './json-view.tsx';

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

/** The run's events, newest last, with their times. Shows the newest; a button shows older ones. */
export function EventLog({ followed: { record } }: { followed: FollowedRun }) {
  const [filter, setFilter] = useState(0);
  const [time, setTime] = useState(0);
  const [end, setEnd] = useState<number>();
  const show = times[time]?.show ?? (() => '');
  const timeOf = ({ at }: LoggedEvent, before: number): string => show(at, before, record.startTime);
  const list = useRef<HTMLOListElement>(null);
  const shows = filters[filter]?.shows ?? (() => true);
  const matching = record.events.filter(({ event }) => shows(event));
  const last = end === undefined ? matching.length : Math.min(end, matching.length);
  const first = Math.max(0, last - maxRows);
  useEffect(() => {
    // Scrolls to new events, unless older ones are shown.
    const box = list.current?.closest('.panel');
    if (end === undefined && box) box.scrollTop = box.scrollHeight;
  }, [record.eventCount, end]);
  return (
    <>
      <FilterBar
        label="Kinds of events"
        options={filters.map(({ label }) => label)}
        selected={filter}
        onSelect={setFilter}
      />
      <FilterBar label="Times" options={times.map(({ label }) => label)} selected={time} onSelect={setTime} />
      {first > 0 && (
        <button type="button" class="quiet more" onClick={() => setEnd(first)}>
          Older ({first})
        </button>
      )}
      {first === 0 && record.eventCount > record.events.length && (
        <p class="note">The page keeps only the newest {record.events.length} events; the server has all.</p>
      )}
      {matching.length === 0 && (
        <p class="note">{record.eventCount === 0 ? 'No events yet.' : 'No event matches the filter.'}</p>
      )}
      <ol class="events" ref={list}>
        {matching.slice(first, last).map((entry, index) => (
          <Row key={entry.number} entry={entry} time={timeOf(entry, matching[first + index - 1]?.at ?? 0)} />
        ))}
      </ol>
      {end !== undefined && (
        <button type="button" class="quiet more" onClick={() => setEnd(undefined)}>
          Newest
        </button>
      )}
    </>
  );
}

function Row({ entry, time }: { entry: LoggedEvent; time: string }) {
  const { number, event } = entry;
  const [open, setOpen] = useState(false);
  return (
    <li data-type={event.type}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary class="entry">
          <span class="number">{number}</span>
          <span class="type">{event.type}</span>
          <span class="summary">{summary(event)}</span>
          <span class="time">{time}</span>
        </summary>
        {open && <JsonView value={event} label={`event ${number}`} />}
      </details>
    </li>
  );
}

/** Characters of an event's summary. */
const maxSummary = 80;

function summary(event: Event): string {
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
      return event.run.error?.message ?? '';
  }
}
