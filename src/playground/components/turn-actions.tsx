import type { MessagePart, Run } from '../../client/client.ts';
import { isFinal } from '../../core/run-state.ts';
import { usePlayground } from '../playground.ts';

/** What a person can do with the input of a run again. */
export function TurnActions({ run, input }: { run: Run; input: readonly MessagePart[] | undefined }) {
  const { conversation } = usePlayground();
  if (input === undefined || !isFinal(run.status)) return null;
  return (
    <span class="actions">
      <button type="button" class="quiet" onClick={() => void conversation.runAgain(run)}>
        Run again
      </button>
      <button type="button" class="quiet" onClick={() => void conversation.edit(run)}>
        Edit and resend
      </button>
    </span>
  );
}
