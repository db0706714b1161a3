import { isFinal } from '../../core/run-state.ts';
import type { Followed } from '../conversation.ts';
import { count, duration } from '../measures.ts';
import { TokenChart } from './token-chart.tsx';

/** How fast it came. Of a run that was over, or under way, when the page came, only what the page saw can be said. */
export function RunFigures({ followed }: { followed: Followed }) {
  const { run, firstToken, tokenCount, rate, total, asked, last } = followed.record;
  const figures: readonly (readonly [string, string])[] = [
    ['First token', asked && firstToken !== undefined ? duration(firstToken) : '–'],
    ['Tokens', count(tokenCount)],
    ['Per second', asked && rate !== undefined ? count(rate) : '–'],
    ['Events', count(total)],
    ['Took', run === undefined ? '–' : duration(tookMs(run.created_at, run.finished_at, last))],
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
      {!asked && run !== undefined && (
        <p class="hint">
          {isFinal(run.status) ? 'Read from the log: ' : 'Joined on its way: '}times are those of this page's reading.
        </p>
      )}
    </div>
  );
}

const tookMs = (created: string, finished: string | undefined, seen: number): number =>
  finished === undefined ? seen : Date.parse(finished) - Date.parse(created);
