import { Component, type ComponentChildren } from 'preact';
import type { Run } from '../../client/client.ts';
import { reasonOf } from '../../client/client-error.ts';
import { isFinal } from '../../core/run-state.ts';
import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { AwaitForm } from './await-form.tsx';
import { MessageView } from './message-view.tsx';
import { StatusBadge } from './status-badge.tsx';

/** A run in the conversation: its input, its output and its status. */
export function RunView({ run, followed }: { run: Run; followed: boolean }) {
  const { storage, router } = usePlayground();
  const input = storage.inputs.value[run.run_id];
  const isWaiting = followed && (run.status === 'created' || run.status === 'in-progress') && run.output.length === 0;
  return (
    <article class="turn" data-followed={followed} aria-label={`Run of ${run.agent_name}, ${run.status}`}>
      {input === undefined ? (
        <p class="note unknown">The input of this run was sent from another browser.</p>
      ) : (
        <MessageView message={{ role: 'user', parts: input }} />
      )}
      {run.output.map((message, index) => (
        <ErrorBoundary key={`${index}`}>
          <MessageView message={message} />
        </ErrorBoundary>
      ))}
      {isWaiting && <p class="waiting">{run.agent_name} is thinking…</p>}
      {run.await_request !== undefined && (
        <ErrorBoundary key={run.run_id}>
          <AwaitForm run={run} request={run.await_request} />
        </ErrorBoundary>
      )}
      {run.error !== undefined && (
        <p class="problem">
          <code>{reasonOf(run.error)}</code> {run.error.message}
        </p>
      )}
      <footer class="about">
        <StatusBadge status={run.status} />
        <time dateTime={run.created_at}>{formatTime(run.created_at)}</time>
        <a href={router.href({ run: run.run_id, view: 'inspect' })} aria-current={followed ? 'true' : undefined}>
          {followed ? 'Inspecting' : isFinal(run.status) ? 'Inspect' : 'Follow'}
        </a>
      </footer>
    </article>
  );
}

interface ErrorBoundaryProps {
  readonly children: ComponentChildren;
}

/** Contains an error of its children, so that the rest of the page works. */
class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render({ children }: ErrorBoundaryProps): ComponentChildren {
    if (!this.state.failed) return children;
    return <p class="problem">This content cannot be displayed. The inspector shows it as JSON.</p>;
  }
}
