import { useEffect, useState } from 'preact/hooks';
import { usePlayground } from '../playground.ts';

/** Shows that the server cannot be reached, and the time of the next attempt. */
export function ConnectionStatus() {
  const { connection } = usePlayground();
  const disconnection = connection.disconnection.value;
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (disconnection === undefined) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [disconnection]);
  if (disconnection === undefined) return null;
  const { attempt, retryAt = 0 } = disconnection;
  const seconds = Math.ceil((retryAt - now) / 1_000);
  return (
    <div class="line" role="alert">
      <strong>Connection lost.</strong> The page reconnects, and the stream continues where it broke. If the server
      restarts, runs of durable agents go on; other runs fail.
      {attempt !== undefined && (
        <span aria-hidden="true">
          {' '}
          Attempt {attempt} {seconds > 0 ? `in ${seconds} s` : 'now'}.
        </span>
      )}
    </div>
  );
}
