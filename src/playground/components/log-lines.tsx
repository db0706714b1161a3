import { useEffect } from 'preact/hooks';
import type { LogLine } from '../../client/client.ts';
import type { FollowedRun } from '../conversation.ts';
import { isLogLine } from '../log-lines.ts';
import { DiagnosticsNote, useDiagnostics } from './diagnostics-note.tsx';

interface LogLinesProps {
  readonly followed: FollowedRun;
  /** Gets all lines so far, each time there are more. */
  readonly onLines: (lines: readonly LogLine[]) => void;
}

/** Reads the lines that the run's agents wrote to `context.log`, and says why there are none. */
export function LogLines({ followed, onLines }: LogLinesProps) {
  const diagnostics = useDiagnostics(followed);
  const entries = diagnostics.entries.value;
  useEffect(() => onLines(entries.filter(isLogLine)), [entries, onLines]);
  const missing = !entries.some(isLogLine) && (
    <>
      No lines. The server keeps what agents write to <code>context.log</code> where it captures content:{' '}
      <code>--capture-content on</code>.
    </>
  );
  return <DiagnosticsNote diagnostics={diagnostics} what="Lines of the log" empty={missing} />;
}
