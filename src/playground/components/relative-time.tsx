import { formatAge, formatExact, formatSpan } from '../format.ts';
import { usePlayground } from '../playground.ts';

export interface RelativeTimeProps {
  readonly time: string;
  /** `12 s` in the place of `12 s ago`. */
  readonly span?: boolean;
}

/** The age of a time, which grows; the exact time is its title. */
export function RelativeTime({ time, span = false }: RelativeTimeProps) {
  const { clock } = usePlayground();
  const age = clock.now.value - Date.parse(time);
  return (
    <time dateTime={time} title={formatExact(time)}>
      {span ? formatSpan(age) : formatAge(age)}
    </time>
  );
}
