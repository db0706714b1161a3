import { useEffect, useState } from 'react';
import { type Client, type Run, toRun } from '../client/client.ts';

export interface FollowedRun {
  /** The run so far: its status, its output, and its question while it awaits a reply. */
  readonly run: Run | undefined;
  /** Why the run cannot be followed. The error of a failed run is `run.error`. */
  readonly error: Error | undefined;
}

const nothing: FollowedRun = { run: undefined, error: undefined };

/**
 * Follows a run from its first event, and renders anew with each one. Unmounting, or another `run_id`, stops following; the
 * run continues. An effect that StrictMode runs twice does no harm, because following a run starts none.
 */
export function useRun(client: Pick<Client, 'watch'>, run_id: string | undefined): FollowedRun {
  const [followed, setFollowed] = useState(nothing);
  useEffect(() => {
    setFollowed(nothing);
    if (run_id === undefined) return;
    const subscription = client
      .watch(run_id)
      .pipe(toRun())
      .subscribe({
        next: (run) => setFollowed({ run, error: undefined }),
        error: (error) => setFollowed(({ run }) => ({ run, error })),
      });
    return () => subscription.unsubscribe();
  }, [client, run_id]);
  return followed;
}
