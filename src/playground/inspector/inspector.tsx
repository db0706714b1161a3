import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { filter, startWith, switchMap } from 'rxjs';
import type { Run } from '../../client/client.ts';
import { usePlayground } from '../app/playground.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { CopyButton, Facts, StatusBadge } from '../elements/controls.tsx';
import { formatDuration, formatNumber } from '../elements/format.ts';
import { JsonView } from '../elements/json-view.tsx';
import { EventLog } from './event-log.tsx';
import { ModelCalls } from './model-calls.tsx';
import { RequestList } from './request-list.tsx';
import { RunAgainButton } from './run-again-button.tsx';
import { SessionView } from './session-view.tsx';
import { TimelineView } from './timeline.tsx';
import { ToolList } from './tool-list.tsx';

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
          <p class="id row">
            <code class="clip">{followed.record.run_id}</code>
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

/** Why a run is parked, and a button that has it tried again. The events of a run do not say that it is parked. */
function ParkedNote({ run_id }: { run_id: string }) {
  const { client, conversation, runChanges } = usePlayground();
  const [parked, setParked] = useState<Run['parked']>();
  useEffect(() => {
    const changes = runChanges.pipe(
      filter((run) => run === undefined || run.run_id === run_id),
      startWith(undefined),
      switchMap((run) => (run === undefined ? client.get(run_id).catch(() => undefined) : [run])),
    );
    const subscription = changes.subscribe((run) => setParked(run?.parked));
    return () => subscription.unsubscribe();
  }, [client, runChanges, run_id]);
  if (parked === undefined) return null;
  return (
    <div class="parked row" role="status">
      <p>
        <strong>Parked.</strong> {parked.reason}
      </p>
      <button type="button" onClick={() => void conversation.retry(run_id)}>
        Try again
      </button>
    </div>
  );
}

/** Counts and times of the run. Parts and their rates are measured in this page; tokens are those that the agent reports. */
function RunFigures({ followed }: { followed: FollowedRun }) {
  const { run, firstTokenAt, tokenCount, rate, eventCount, createdHere, lastEventAt } = followed.record;
  const tokens = run?.usage?.tokens;
  const figures: readonly (readonly [string, string | undefined])[] = [
    ['First part', createdHere && firstTokenAt !== undefined ? formatDuration(firstTokenAt) : '–'],
    ['Parts', formatNumber(tokenCount)],
    ['Parts/s', createdHere && rate !== undefined ? formatNumber(rate) : '–'],
    ['Tokens', tokens === undefined ? undefined : formatNumber(tokens)],
    ['Events', formatNumber(eventCount)],
    ['Duration', run === undefined ? '–' : formatDuration(runDuration(run.created_at, run.finished_at, lastEventAt))],
  ];
  return (
    <div class="run-figures stack">
      <Facts class="row" facts={figures} />
      {createdHere && <PartChart followed={followed} />}
      {!createdHere && run !== undefined && (
        <p class="note">
          The page reads this run from the server's log. Changes of status and messages have the server's times; the log
          has no times for other events.
        </p>
      )}
    </div>
  );
}

const runDuration = (created: string, finished: string | undefined, readFor: number): number =>
  finished === undefined ? readFor : Date.parse(finished) - Date.parse(created);

const width = 320;
const height = 56;

/** Parts over time, with a mark at the first one. */
function PartChart({ followed }: { followed: FollowedRun }) {
  const { tokens, tokenCount, firstTokenAt, rate } = followed.record;
  if (tokenCount === 0 || firstTokenAt === undefined) return null;
  const { bars, width: step, peak } = tokens;
  const highest = Math.max(...bars);
  const barWidth = width / Math.max(bars.length, 12);
  const description = `${formatNumber(tokenCount)} parts${rate === undefined ? '' : `, ${formatNumber(rate)} per second`}; the first after ${formatDuration(firstTokenAt)}`;
  const mark = Math.min((firstTokenAt / step) * barWidth, width - 1);
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={description} preserveAspectRatio="none">
        {bars.map((value, index) => {
          const barHeight = (value / highest) * (height - 4);
          return (
            <rect
              key={`${index}`}
              x={index * barWidth}
              y={height - barHeight}
              width={Math.max(barWidth - 1, 0.5)}
              height={barHeight}
              rx="1"
            />
          );
        })}
        <line x1={mark} x2={mark} y1="0" y2={height} />
      </svg>
      <figcaption class="row">
        <span>{formatDuration(step)} a bar</span>
        <span>
          at most {formatNumber(peak)} {peak === 1 ? 'part' : 'parts'} in a second
        </span>
      </figcaption>
    </figure>
  );
}

interface Tab {
  readonly name: string;
  readonly panel: () => ComponentChildren;
}

/** Tabs after the ARIA pattern: arrow keys switch tabs, Tab moves into the panel. */
function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const id = useId();
  const [selected, setSelected] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const select = (index: number): void => {
    const next = (index + tabs.length) % tabs.length;
    setSelected(next);
    list.current?.querySelectorAll('button')[next]?.focus();
  };
  const keys: Readonly<Record<string, () => void>> = {
    ArrowRight: () => select(selected + 1),
    ArrowLeft: () => select(selected - 1),
    Home: () => select(0),
    End: () => select(-1),
  };
  return (
    <>
      <div class="tabs row" role="tablist" aria-label={label} ref={list}>
        {tabs.map(({ name }, index) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => setSelected(index)}
            onKeyDown={(event) => {
              const action = keys[event.key];
              if (action === undefined) return;
              event.preventDefault();
              action();
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div
        // A new element for each tab, which begins at its top.
        key={selected}
        class="panel"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${selected}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the ARIA pattern of tabs has a focusable panel.
        tabIndex={0}
      >
        {tabs[selected]?.panel()}
      </div>
    </>
  );
}
