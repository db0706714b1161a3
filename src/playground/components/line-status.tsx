import { useEffect, useState } from 'preact/hooks';
import { usePlayground } from '../playground.ts';

/** Says that the line is down, and when it is tried again. */
export function LineStatus() {
  const { line } = usePlayground();
  const down = line.down.value;
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (down === undefined) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [down]);
  if (down === undefined) return null;
  const { attempt, again = 0 } = down;
  const seconds = Math.ceil((again - now) / 1_000);
  return (
    <div class="line" role="alert">
      <strong>The line is down.</strong> Nothing is lost: the run goes on, and so does the stream where it broke.
      {attempt !== undefined && (
        <span aria-hidden="true">
          {' '}
          Attempt {attempt} {seconds > 0 ? `in ${seconds} s` : 'now'}.
        </span>
      )}
    </div>
  );
}
