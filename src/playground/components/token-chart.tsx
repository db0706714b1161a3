import type { Followed } from '../conversation.ts';
import { count, duration } from '../measures.ts';

const width = 320;
const height = 56;

/** Tokens over time, and where the first one came. */
export function TokenChart({ followed }: { followed: Followed }) {
  const { tokens, tokenCount, firstToken, rate } = followed.record;
  if (tokenCount === 0 || firstToken === undefined) return null;
  const { bars, width: step, peak } = tokens;
  const most = Math.max(...bars);
  const wide = width / Math.max(bars.length, 12);
  const says = `${count(tokenCount)} tokens${rate === undefined ? '' : `, ${count(rate)} a second`}; the first after ${duration(firstToken)}`;
  const mark = Math.min((firstToken / step) * wide, width - 1);
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={says} preserveAspectRatio="none">
        {bars.map((value, at) => {
          const tall = (value / most) * (height - 4);
          return (
            <rect key={`${at}`} x={at * wide} y={height - tall} width={Math.max(wide - 1, 0.5)} height={tall} rx="1" />
          );
        })}
        <line x1={mark} x2={mark} y1="0" y2={height} />
      </svg>
      <figcaption>
        <span>{duration(step)} a bar</span>
        <span>peak {count(peak)} tokens/s</span>
      </figcaption>
    </figure>
  );
}
