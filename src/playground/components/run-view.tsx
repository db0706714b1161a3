import type { Run } from '../../client/client.ts';
import { reasonOf } from '../../client/client-error.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { MessageView } from './message-view.tsx';
import { RunOutput } from './run-output.tsx';
import { StatusBadge } from './status-badge.tsx';
import { TurnActions } from './turn-actions.tsx';

/** A run in the conversation: its input, its output and its status. */
export function RunView({ run, followed }: { run: Run; followed: FollowedRun | undefined }) {
  const { conversation, router } = usePlayground();
  const input = conversation.inputs.value[run.run_id];
  return (
    <article class="turn" data-followed={followed !== undefined} aria-label={`Run of ${run.agent_name}, ${run.status}`}>
      {input !== undefined && <MessageView message={{ role: 'user', parts: input }} />}
      <RunOutput run={run} followed={followed} />
      {run.error !== undefined && (
        <p class="problem">
          <code>{reasonOf(run.error)}</code> {run.error.message}
        </p>
      )}
      <footer class="about">
        <StatusBadge status={run.status} />
        <time dateTime={run.created_at}>{formatTime(run.created_at)}</time>
        <a class="inspect" href={router.href({ run: run.run_id, view: 'inspect' })}>
          Inspect
        </a>
        <TurnActions run={run} input={input} />
      </footer>
    </article>
  );
}
