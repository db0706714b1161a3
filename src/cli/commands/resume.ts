import { isDeepStrictEqual } from 'node:util';
import type { Event } from '../../schema/event.ts';
import { textOrStdin } from '../input.ts';
import { type FollowOptions, RunFollower } from '../run-follower.ts';

/** Replies to a run that awaits, and follows it. Events up to the await request are not printed again. */
export async function resume(run_id: string, text: string, options: FollowOptions): Promise<number> {
  const follower = new RunFollower(options);
  const awaiting = await follower.client.get(run_id);
  await follower.client.resume(run_id, await textOrStdin(text));
  let pastRequest = false;
  const skip = (event: Event): boolean => {
    if (pastRequest) return false;
    // Only the await request is compared: the event does not repeat the run's output.
    pastRequest = 'run' in event && isDeepStrictEqual(event.run.await_request, awaiting.await_request);
    return true;
  };
  return follower.follow(run_id, { skip, onInterrupt: 'cancel' });
}
