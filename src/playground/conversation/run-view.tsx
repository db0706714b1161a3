import type { ComponentChildren } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import type { MessagePart, Run } from '../../client/client.ts';
import { reasonOf } from '../../client/client-error.ts';
import { isFinal } from '../../core/run-state.ts';
import { usePlayground } from '../app/playground.ts';
import { StatusBadge } from '../elements/controls.tsx';
import { formatTime } from '../elements/format.ts';
import { QuestionCard } from '../forms/question-card.tsx';
import type { RunRecord } from '../inspector/run-record.ts';
import type { FollowedRun } from './conversation.ts';
import { MessageView } from './message-view.tsx';
import { type FlowItem, flowOf } from './run-flow.ts';
import { Steps, type StepTime } from './steps.tsx';

/** A run in the conversation: its input, its output and its status. */
export function RunView({ run, followed }: { run: Run; followed: FollowedRun | undefined }) {
  const { conversation, router } = usePlayground();
  const input = conversation.inputs.value[run.run_id];
  return (
    <article
      class="turn stack"
      data-followed={followed !== undefined}
      aria-label={`Run of ${run.agent_name}, ${run.status}`}
    >
      {input !== undefined && <MessageView message={{ role: 'user', parts: input }} />}
      <RunOutput run={run} followed={followed} />
      {run.error !== undefined && (
        <p class="problem">
          <code>{reasonOf(run.error)}</code> {run.error.message}
        </p>
      )}
      <footer class="about row">
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

/** What a person can do with the input of a run again. */
function TurnActions({ run, input }: { run: Run; input: readonly MessagePart[] | undefined }) {
  const { conversation } = usePlayground();
  if (input === undefined || !isFinal(run.status)) return null;
  return (
    <span class="end">
      <button type="button" class="quiet" onClick={() => void conversation.runAgain(run)}>
        Run again
      </button>
      <button type="button" class="quiet" onClick={() => void conversation.edit(run)}>
        Edit and resend
      </button>
    </span>
  );
}

/** A run's messages, questions and steps in the order of its log; of the followed run also its events. */
function RunOutput({ run, followed }: { run: Run; followed: FollowedRun | undefined }) {
  const record = followed?.record;
  const working = followed !== undefined && (run.status === 'created' || run.status === 'in-progress');
  const items = flowOf(run, record?.notes);
  return (
    <>
      {items.map((item, index) => (
        <ErrorBoundary key={`${item.kind} ${index}`}>
          <FlowView run={run} record={record} item={item} live={working && index === items.length - 1} />
        </ErrorBoundary>
      ))}
      {working && items.length === 0 && <p class="note waiting">{run.agent_name} is working…</p>}
    </>
  );
}

interface FlowViewProps {
  readonly run: Run;
  readonly record: RunRecord | undefined;
  readonly item: FlowItem;
  /** Whether the run is at work and nothing follows yet. */
  readonly live: boolean;
}

function FlowView({ run, record, item, live }: FlowViewProps) {
  const timeOf = timesOf(record, item.position);
  switch (item.kind) {
    case 'question':
      return <QuestionCard run={run} question={item.question} open={item.open} followed={record !== undefined} />;
    case 'notes':
      return <Steps rows={item.notes.map((note) => ({ note }))} running={live} timeOf={timeOf} />;
    default: {
      const { message, notes } = item;
      return (
        <MessageView
          message={message}
          notes={notes}
          timeOf={timeOf}
          live={live && message.completed_at === undefined}
          called={message.role !== 'agent' && message.role !== `agent/${run.agent_name}`}
        />
      );
    }
  }
}

/** The times of the steps of a message, if the page has started the run: others were read from the log. */
function timesOf(record: RunRecord | undefined, message: number): StepTime | undefined {
  if (record?.createdHere !== true) return undefined;
  return (parts) => {
    const times = parts.map((part) => record.notes.stepTime(message, part));
    const [first, last] = [times[0], times.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    // A call and its result: the time between them. One event: the time since the event before it.
    return last.ended - (parts.length > 1 ? first.ended : first.began);
  };
}

/** Contains an error of its children, so that the rest of the page works. */
function ErrorBoundary({ children }: { children: ComponentChildren }) {
  const [error] = useErrorBoundary();
  if (error === undefined) return <>{children}</>;
  return <p class="problem">This content cannot be displayed. The inspector shows it as JSON.</p>;
}
