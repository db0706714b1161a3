import type { Run } from '../../client/client.ts';
import { reasonOf } from '../../client/client-error.ts';
import { isFinal } from '../../core/run-state.ts';
import { clock } from '../measures.ts';
import { usePlayground } from '../playground.ts';
import { AwaitForm } from './await-form.tsx';
import { Guard } from './guard.tsx';
import { MessageView } from './message-view.tsx';
import { StatusBadge } from './status-badge.tsx';

/** What was said to an agent, and what became of it: one run. */
export function Turn({ run, followed }: { run: Run; followed: boolean }) {
  const { memory, places } = usePlayground();
  const input = memory.inputs.value[run.run_id];
  const waits = followed && (run.status === 'created' || run.status === 'in-progress') && run.output.length === 0;
  return (
    <article class="turn" data-followed={followed} aria-label={`Run of ${run.agent_name}, ${run.status}`}>
      {input === undefined ? (
        <p class="hint unknown">What this run was given was said elsewhere.</p>
      ) : (
        <MessageView message={{ role: 'user', parts: input }} />
      )}
      {run.output.map((message, at) => (
        <Guard key={`${at}`}>
          <MessageView message={message} />
        </Guard>
      ))}
      {waits && <p class="waiting">{run.agent_name} is thinking…</p>}
      {run.await_request !== undefined && (
        <Guard key={run.run_id}>
          <AwaitForm run={run} request={run.await_request} />
        </Guard>
      )}
      {run.error !== undefined && (
        <p class="problem">
          <code>{reasonOf(run.error)}</code> {run.error.message}
        </p>
      )}
      <footer class="about">
        <StatusBadge status={run.status} />
        <time dateTime={run.created_at}>{clock(run.created_at)}</time>
        <a href={places.href({ run: run.run_id, view: 'inspect' })} aria-current={followed ? 'true' : undefined}>
          {followed ? 'Inspecting' : isFinal(run.status) ? 'Inspect' : 'Follow'}
        </a>
      </footer>
    </article>
  );
}
