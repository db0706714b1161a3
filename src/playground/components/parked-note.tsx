import { useEffect, useState } from 'preact/hooks';
import { filter, startWith, switchMap } from 'rxjs';
import type { Run } from '../../client/client.ts';
import { usePlayground } from '../playground.ts';

/** Why a run is parked, and a button that has it tried again. The events of a run do not say that it is parked. */
export function ParkedNote({ run_id }: { run_id: string }) {
  const { client, conversation, runChanges } = usePlayground();
  const [parked, setParked] = useState<Run['parked']>();
  useEffect(() => {
    const changes = runChanges.pipe(
      filter((run) => run === undefined || run.run_id === run_id),
      startWith(undefined),
      switchMap((run) => (run === undefined ? client.get(run_id).catch(() => undefined) : [run])),
    );
    const subscription = changes.subscribe((run) => setParked(run?.parked));
    return () => subscription.unsubscribe();
  }, [client, runChanges, run_id]);
  if (parked === undefined) return null;
  return (
    <div class="parked" role="status">
      <p>
        <strong>Parked.</strong> {parked.reason}
      </p>
      <button type="button" onClick={() => void conversation.retry(run_id)}>
        Try again
      </button>
    </div>
  );
}
