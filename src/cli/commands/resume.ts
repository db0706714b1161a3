import { isDeepStrictEqual } from 'node:util';
import type { Event } from '../../schema/event.ts';
import { Followed, type FollowOptions } from '../follow.ts';
import { textOrStdin } from '../input.ts';

/** Answers what a run asks, and follows how it goes on: what there was before the question is not shown again. */
export async function resume(run_id: string, text: string, options: FollowOptions): Promise<number> {
  const followed = new Followed(options);
  const asking = await followed.client.get(run_id);
  await followed.client.resume(run_id, await textOrStdin(text));
  let asked = false;
  const skip = (event: Event): boolean => {
    if (asked) return false;
    // The event may not repeat the output of the run.
    asked = 'run' in event && isDeepStrictEqual(event.run.await_request, asking.await_request);
    return true;
  };
  return followed.follow(run_id, { skip, interrupt: 'cancel' });
}
