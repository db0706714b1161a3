import { isFinal } from '../../core/run-state.ts';
import { usePlayground } from '../playground.ts';
import { Icon } from './icons.tsx';

/** Cancels the followed run, while it is not final. */
export function StopButton() {
  const { conversation } = usePlayground();
  const run = conversation.followed.value?.record.run;
  if (run === undefined || isFinal(run.status)) return null;
  return (
    <button
      type="button"
      class="stop round"
      aria-label="Stop the run"
      disabled={run.status === 'cancelling'}
      onClick={() => void conversation.cancel(run.run_id)}
    >
      <Icon name="stop" />
    </button>
  );
}
