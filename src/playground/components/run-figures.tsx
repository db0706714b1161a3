import type { FollowedRun } from '../conversation.ts';
import { formatDuration, formatNumber } from '../format.ts';

/** Counts and times of the run. Parts and their rates are measured in this page; tokens are those that the agent reports. */
export function RunFigures({ followed }: { followed: FollowedRun }) {
  const { run, firstTokenAt, tokenCount, rate, eventCount, createdHere, lastEventAt } = followed.record;
  const tokens = run?.usage?.tokens;
  const figures: readonly (readonly [string, string])[] = [
    ['First part', createdHere && firstTokenAt !== undefined ? formatDuration(firstTokenAt) : '–'],
    ['Parts', formatNumber(tokenCount)],
    ['Parts/s', createdHere && rate !== undefined ? formatNumber(rate) : '–'],
    ...(tokens === undefined ? [] : [['Tokens', formatNumber(tokens)] as const]),
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
      <figcaption>
        <span>{formatDuration(step)} a bar</span>
        <span>
          at most {formatNumber(peak)} {peak === 1 ? 'part' : 'parts'} in a second
        </span>
      </figcaption>
    </figure>
  );
}
