import type { Run } from '../../client/client.ts';
import type { FollowedRun } from '../conversation.ts';
import { type FlowItem, flowOf } from '../run-flow.ts';
import type { RunRecord } from '../run-record.ts';
import { ErrorBoundary } from './error-boundary.tsx';
import { MessageView } from './message-view.tsx';
import { QuestionCard } from './question-card.tsx';
import { Steps, type StepTime } from './steps.tsx';

/** A run's messages, questions and steps in the order of its log; of the followed run also its events. */
export function RunOutput({ run, followed }: { run: Run; followed: FollowedRun | undefined }) {
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
      {working && items.length === 0 && <p class="waiting">{run.agent_name} is working…</p>}
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
