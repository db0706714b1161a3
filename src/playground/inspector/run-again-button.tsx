import { useState } from 'preact/hooks';
import { messageOf } from '../../core/json.ts';
import { usePlayground } from '../app/playground.ts';

interface RunAgainProps {
  readonly run_id: string;
  /** The number of the last event that is repeated; 0 for none. */
  readonly after: number;
  readonly label?: string;
}

/** Makes a run that repeats this one up to an event, and opens it. */
export function RunAgainButton({ run_id, after, label = 'Run again from here' }: RunAgainProps) {
  const { conversation } = usePlayground();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const repeat = async (): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await conversation.repeat(run_id, after);
    } catch (error) {
      setProblem(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <span class="run-again">
      <button type="button" class="quiet" disabled={busy} onClick={() => void repeat()}>
        {label}
      </button>
      <span role="status">{problem !== undefined && <span class="problem">{problem}</span>}</span>
    </span>
  );
}
