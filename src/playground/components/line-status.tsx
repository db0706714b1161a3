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
  const seconds = Math.ceil((down.again - now) / 1_000);
  return (
    <div class="line" role="alert">
      <strong>The line is down.</strong> Nothing is lost: the run goes on, and so does the stream where it broke.
      <span aria-hidden="true">
        {' '}
        Attempt {down.attempt} {seconds > 0 ? `in ${seconds} s` : 'now'}.
      </span>
    </div>
  );
}
