import { useEffect, useState } from 'react';
import type { Client } from '../client/client.ts';
import { toRun } from '../client/operators.ts';
import type { Run } from '../schema/run.ts';

/** A run as a component renders it. */
export interface LiveRun {
  /** The Run after its newest event; undefined until the first one has come. Parts that did not change stay identical. */
  readonly run: Run | undefined;
  /** Why the stream ended before the run did: a ClientError. A run that failed has its own error in `run.error`. */
  readonly error: Error | undefined;
}

const nothing: LiveRun = { run: undefined, error: undefined };

/**
 * Follows a run and renders the component again with each event. Without a `run_id` it follows nothing. Unmounting, or
 * another `run_id`, stops following; the run goes on. StrictMode runs effects twice, which is harmless here: to follow a
 * run does not begin one.
 */
export function useRun(client: Pick<Client, 'watch'>, run_id: string | undefined): LiveRun {
  const [live, setLive] = useState(nothing);
  useEffect(() => {
    setLive(nothing);
    if (run_id === undefined) return undefined;
    const subscription = client
      .watch(run_id)
      .pipe(toRun())
      .subscribe({
        next: (run) => setLive({ run, error: undefined }),
        error: (error) => setLive(({ run }) => ({ run, error })),
      });
    return () => subscription.unsubscribe();
  }, [client, run_id]);
  return live;
}
