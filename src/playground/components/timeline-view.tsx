import { isFinal } from '../../core/run-state.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatDuration } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { type Span, timelineOf } from '../timeline.ts';

/** Spans in the page at once. */
const maxSpans = 200;

/** A waterfall: when each message, step and question of the run began, and how long it took. */
export function TimelineView({ followed: { record } }: { followed: FollowedRun }) {
  const { clock } = usePlayground();
  const spans = timelineOf(record.events);
  const { run } = record;
  const isLive = run !== undefined && !isFinal(run.status);
  // While the run goes on, its open spans grow with the clock.
  const end = isLive && clock.now.value > 0 ? record.elapsed(performance.now()) : record.lastEventAt;
  const first = Math.max(0, spans.length - maxSpans);
  return (
    <>
      {spans.length === 0 && <p class="note">No events yet.</p>}
      {first > 0 && (
        <p class="note">
          These are the last {maxSpans} of {spans.length} spans.
        </p>
      )}
      <ol class="timeline">
        {spans.slice(first).map((span, index) => (
          <Bar key={`${first + index}`} span={span} end={end} timed={record.createdHere || hasTime(span)} />
        ))}
      </ol>
    </>
  );
}

const kinds: Readonly<Record<Span['kind'], string>> = {
  run: 'Run',
  queue: 'Queue',
  message: 'Message',
  step: 'Step',
  progress: 'Progress',
  call: 'Call',
  question: 'Question',
};

/** Milliseconds. Steps of the past arrive together, because the log has no times for them. */
const minTime = 5;
const hasTime = ({ kind, from, to }: Span): boolean =>
  (kind !== 'step' && kind !== 'progress') || to === undefined || to - from > minTime;

interface BarProps {
  readonly span: Span;
  readonly end: number;
  /** Whether its times are known. */
  readonly timed: boolean;
}

function Bar({ span: { kind, label, detail, from, to }, end, timed }: BarProps) {
  const share = (time: number): string => `${(100 * Math.min(time, end)) / Math.max(end, 1)}%`;
  const took = formatDuration((to ?? end) - from);
  return (
    <li data-kind={kind} title={detail ?? label}>
      <span class="label">
        <span class="kind">{kinds[kind]}</span> {label === kinds[kind] ? (detail ?? '') : label}
      </span>
      <span class="took">
        {timed ? (
          <>
            {to === undefined ? `${took}…` : took} <span class="at">at {formatDuration(from)}</span>
          </>
        ) : (
          <span class="at">no time in the log</span>
        )}
      </span>
      <span class="track">
        {timed && <span class="bar" style={{ left: share(from), width: share((to ?? end) - from) }} />}
      </span>
    </li>
  );
}
