import { usePlayground } from '../playground.ts';
import { CopyButton } from './copy-button.tsx';
import { EventLog } from './event-log.tsx';
import { JsonView } from './json-view.tsx';
import { lazily } from './lazily.tsx';
import { ParkedNote } from './parked-note.tsx';
import { RunAgainButton } from './run-again-button.tsx';
import { RunFigures } from './run-figures.tsx';
import { StatusBadge } from './status-badge.tsx';
import { Tabs } from './tabs.tsx';
import { TimelineView } from './timeline-view.tsx';

const RequestList = lazily(() => import('./request-list.tsx').then(({ RequestList }) => RequestList));

const ModelCalls = lazily(() => import('./run-details.tsx').then(({ ModelCalls }) => ModelCalls));
const ToolList = lazily(() => import('./run-details.tsx').then(({ ToolList }) => ToolList));
const SessionView = lazily(() => import('./run-details.tsx').then(({ SessionView }) => SessionView));

/** Details of the followed run. */
export function Inspector() {
  const { conversation } = usePlayground();
  const followed = conversation.followed.value;
  const run = followed?.record.run;
  return (
    <aside class="inspector" aria-label="Run inspector">
      <div class="row">
        <h2>Inspector</h2>
        {run !== undefined && <StatusBadge status={run.status} />}
      </div>
      {followed === undefined && (
        <p class="empty">Send a message or choose a run to see its events, figures and requests live.</p>
      )}
      {followed !== undefined && (
        <>
          <p class="id">
            <code>{followed.record.run_id}</code>
            <CopyButton label="Copy the run's id" text={() => followed.record.run_id} />
            <RunAgainButton run_id={followed.record.run_id} after={0} label="Repeat this run" />
          </p>
          <ParkedNote key={followed.record.run_id} run_id={followed.record.run_id} />
          <RunFigures followed={followed} />
          <Tabs
            label="About the run"
            tabs={[
              { name: 'Events', panel: () => <EventLog key={followed.record.run_id} followed={followed} /> },
              { name: 'Models', panel: () => <ModelCalls key={followed.record.run_id} followed={followed} /> },
              { name: 'Tools', panel: () => <ToolList key={followed.record.run_id} followed={followed} /> },
              { name: 'Session', panel: () => <SessionView key={run?.session_id} followed={followed} /> },
              { name: 'Timeline', panel: () => <TimelineView followed={followed} /> },
              { name: 'Run', panel: () => <JsonView key={followed.record.run_id} value={run} label="the run" /> },
              { name: 'Requests', panel: () => <RequestList run_id={followed.record.run_id} /> },
            ]}
          />
        </>
      )}
    </aside>
  );
}
