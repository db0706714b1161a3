import type { ComponentChildren } from 'preact';
import type { FollowedRun } from '../conversation.ts';
import { isLogLine, withLogLines } from '../log-lines.ts';
import { DiagnosticsNote, useDiagnostics } from './diagnostics-note.tsx';
import { Entries } from './event-log.tsx';

/** The run's events with the lines that its agents wrote to `context.log`. */
export function EventsAndLines({ followed, more }: { followed: FollowedRun; more: ComponentChildren }) {
  const diagnostics = useDiagnostics(followed);
  const { record } = followed;
  const lines = diagnostics.entries.value.filter(isLogLine);
  const note = (
    <DiagnosticsNote diagnostics={diagnostics} what="Lines of the log" empty={lines.length === 0 && missing} />
  );
  return <Entries record={record} entries={withLogLines(record.events, lines)} more={more} note={note} />;
}

const missing = (
  <>
    No lines. The server keeps what agents write to <code>context.log</code> where it captures content:{' '}
    <code>--capture-content on</code>.
  </>
);
