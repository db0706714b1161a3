import { useEffect, useRef, useState } from 'preact/hooks';
import type { Event } from '../../client/client.ts';
import type { Followed } from '../conversation.ts';
import { duration } from '../measures.ts';
import type { Entry } from '../record.ts';
import { FilterBar } from './filter-bar.tsx';

/** Rows in the page at once: a run of any length costs the same to show. */
const rows = 150;

const filters: readonly { label: string; shows: (event: Event) => boolean }[] = [
  { label: 'All', shows: () => true },
  { label: 'Run', shows: ({ type }) => type.startsWith('run.') },
  { label: 'Messages', shows: ({ type }) => type === 'message.created' || type === 'message.completed' },
  { label: 'Parts', shows: ({ type }) => type === 'message.part' },
  { label: 'Generic', shows: ({ type }) => type === 'generic' || type === 'error' },
];

/** The run's events, newest last, with the time between them; the newest few, and older ones on request. */
export function EventLog({ followed: { record } }: { followed: Followed }) {
  const [filter, setFilter] = useState(0);
  const [end, setEnd] = useState<number>();
  const list = useRef<HTMLOListElement>(null);
  const shows = filters[filter]?.shows ?? (() => true);
  const matching = record.entries.filter(({ event }) => shows(event));
  const last = end === undefined ? matching.length : Math.min(end, matching.length);
  const first = Math.max(0, last - rows);
  useEffect(() => {
    // Follows what comes, until somebody goes back.
    const box = list.current?.closest('.panel');
    if (end === undefined && box) box.scrollTop = box.scrollHeight;
  }, [record.total, end]);
  return (
    <>
      <FilterBar
        label="Kinds of events"
        options={filters.map(({ label }) => label)}
        chosen={filter}
        onChoose={setFilter}
      />
      {first > 0 && (
        <button type="button" class="quiet more" onClick={() => setEnd(first)}>
          Older ({first})
        </button>
      )}
      {first === 0 && record.total > record.entries.length && (
        <p class="hint">The page keeps the newest {record.entries.length} events; the server has all of them.</p>
      )}
      {matching.length === 0 && <p class="hint">No such event so far.</p>}
      <ol class="events" ref={list}>
        {matching.slice(first, last).map((entry, at) => (
          <Row key={entry.id} entry={entry} before={matching[first + at - 1]} />
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

function Row({ entry: { id, at, event }, before }: { entry: Entry; before: Entry | undefined }) {
  const [open, setOpen] = useState(false);
  return (
    <li data-type={event.type}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="number">{id}</span>
          <span class="type">{event.type}</span>
          <span class="summary">{summary(event)}</span>
          <span class="time" title={`${duration(at)} after the beginning`}>
            {duration(at - (before?.at ?? 0))}
          </span>
        </summary>
        {open && <pre>{JSON.stringify(event, null, 2)}</pre>}
      </details>
    </li>
  );
}

/** Characters of an event that stand in its row. */
const short = 80;

function summary(event: Event): string {
  switch (event.type) {
    case 'message.part': {
      const { name, content, content_url, metadata } = event.part;
      return (name ?? (metadata ? `${metadata.kind} ` : (content ?? content_url ?? ''))).slice(0, short);
    }
    case 'message.created':
    case 'message.completed':
      return event.message.role;
    case 'generic':
      return JSON.stringify(event.generic).slice(0, short);
    case 'error':
      return event.error.message;
    default:
      return event.run.error?.message ?? '';
  }
}
