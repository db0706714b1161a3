import type { Run } from '../../client/client.ts';
import { textOf } from '../content.ts';
import { usePlayground } from '../playground.ts';

/** Characters of an answer that are read out. */
const longest = 500;

/** Tells screen readers how the run gets on: a sentence for each change of its status, and none for a token. */
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
      return `${agent_name} has answered. ${output.map(textOf).join(' ').slice(0, longest)}`;
    case 'failed':
      return `${agent_name} has failed. ${error?.message ?? ''}`;
    case 'cancelled':
      return `The run of ${agent_name} is cancelled.`;
    case 'awaiting':
      return `${agent_name} asks: ${await_request === undefined ? '' : textOf(await_request.message)}`;
    default:
      return `${agent_name} is at work.`;
  }
}
