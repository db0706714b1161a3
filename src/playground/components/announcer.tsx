import type { Run } from '../../client/client.ts';
import { textOf } from '../content.ts';
import { usePlayground } from '../playground.ts';

/** Characters of an output that are read aloud. */
const maxLength = 500;

/** Announces each change of the run's status to screen readers, but not each token. */
export function Announcer() {
  const { conversation } = usePlayground();
  const run = conversation.followed.value?.record.run;
  return (
    <p class="unseen" role="status" aria-live="polite">
      {run === undefined ? '' : sentence(run)}
    </p>
  );
}

function sentence({ agent_name, status, output, error, await_request }: Run): string {
  switch (status) {
    case 'completed':
      return `${agent_name} has answered. ${output.map(textOf).join(' ').slice(0, maxLength)}`;
    case 'failed':
      return `${agent_name} has failed. ${error?.message ?? ''}`;
    case 'cancelled':
      return `The run of ${agent_name} was cancelled.`;
    case 'awaiting':
      return `${agent_name} asks: ${await_request === undefined ? '' : textOf(await_request.message)}`;
    default:
      return `${agent_name} is working.`;
  }
}
