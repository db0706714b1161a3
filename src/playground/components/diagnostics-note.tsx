import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { isSettled } from '../../core/run-state.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatNumber } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { RunDiagnostics } from '../run-diagnostics.ts';

/** The model calls and log lines of the followed run, for as long as the component is in the page. */
export function useDiagnostics({ record }: FollowedRun): RunDiagnostics {
  const { client } = usePlayground();
  const { run_id, eventCount, run } = record;
  const diagnostics = useMemo(() => new RunDiagnostics(client, run_id), [client, run_id]);
  useEffect(() => () => diagnostics.close(), [diagnostics]);
  useEffect(() => {
    diagnostics.offer(eventCount, run !== undefined && isSettled(run.status));
  }, [diagnostics, eventCount, run]);
  return diagnostics;
}

interface NoteProps {
  readonly diagnostics: RunDiagnostics;
  readonly what: string;
  /** What is said where there are none. */
  readonly empty: ComponentChildren;
}

/** Why there are no diagnostics, or not all. */
export function DiagnosticsNote({ diagnostics: { state, full, entries }, what, empty }: NoteProps) {
  if (state.value === 'reading') return <p class="note">Reading…</p>;
  if (state.value === 'forbidden')
    return (
      <p class="note">
        {what} are for callers with the scope <code>admin</code>, which your key or token does not have.
      </p>
    );
  if (typeof state.value === 'object') return <p class="problem">{state.value.problem}</p>;
  if (full.value)
    return (
      <p class="note">The page shows the first {formatNumber(entries.value.length)} entries; the server has more.</p>
    );
  return empty ? <p class="note">{empty}</p> : null;
}
