import { messageOf } from '../../core/json.ts';
import { usePlayground } from '../app/playground.ts';
import { useWork } from '../elements/use-work.ts';

interface RunAgainProps {
  readonly run_id: string;
  /** The number of the last event that is repeated; 0 for none. */
  readonly after: number;
  readonly label?: string;
}

/** Makes a run that repeats this one up to an event, and opens it. */
export function RunAgainButton({ run_id, after, label = 'Run again from here' }: RunAgainProps) {
  const { conversation } = usePlayground();
  const { begin, busy, error } = useWork();
  return (
    <span class="run-again">
      <button
        type="button"
        class="quiet"
        disabled={busy}
        onClick={() => begin(() => conversation.repeat(run_id, after))}
      >
        {label}
      </button>
      <span role="status">{error !== undefined && <span class="problem">{messageOf(error)}</span>}</span>
    </span>
  );
}
