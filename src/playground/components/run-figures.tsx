import { isFinal } from '../../core/run-state.ts';
import type { FollowedRun } from '../conversation.ts';
import { formatDuration, formatNumber } from '../format.ts';

/** Counts and times of the run. Of a run that this page did not create, only the times of reading it are known. */
export function RunFigures({ followed }: { followed: FollowedRun }) {
  const { run, firstTokenAt, tokenCount, rate, eventCount, createdHere, lastEventAt } = followed.record;
  const figures: readonly (readonly [string, string])[] = [
    ['First token', createdHere && firstTokenAt !== undefined ? formatDuration(firstTokenAt) : '–'],
    ['Tokens', formatNumber(tokenCount)],
    ['Per second', createdHere && rate !== undefined ? formatNumber(rate) : '–'],
    ['Events', formatNumber(eventCount)],
    ['Duration', run === undefined ? '–' : formatDuration(runDuration(run.created_at, run.finished_at, lastEventAt))],
  ];
  return (
    <div class="run-figures">
      <dl>
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <TokenChart followed={followed} />
      {!createdHere && run !== undefined && (
        <p class="note">
          {isFinal(run.status) ? 'Read from the log: ' : 'Joined while running: '}the times are those of reading, not of
          the run.
        </p>
      )}
    </div>
  );
}

const runDuration = (created: string, finished: string | undefined, readFor: number): number =>
  finished === undefined ? readFor : Date.parse(finished) - Date.parse(created);

const width = 320;
const height = 56;

/** Tokens over time, with a mark at the first one. */
function TokenChart({ followed }: { followed: FollowedRun }) {
  const { tokens, tokenCount, firstTokenAt, rate } = followed.record;
  if (tokenCount === 0 || firstTokenAt === undefined) return null;
  const { bars, width: step, peak } = tokens;
  const highest = Math.max(...bars);
  const barWidth = width / Math.max(bars.length, 12);
  const description = `${formatNumber(tokenCount)} tokens${rate === undefined ? '' : `, ${formatNumber(rate)} per second`}; the first after ${formatDuration(firstTokenAt)}`;
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
      <figcaption>
        <span>{formatDuration(step)} a bar</span>
        <span>peak {formatNumber(peak)} tokens/s</span>
      </figcaption>
    </figure>
  );
}
