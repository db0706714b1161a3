import { isDeepStrictEqual } from 'node:util';
import type { Event } from '../../schema/event.ts';
import { UsageError } from '../exit-codes.ts';
import { replyOf } from '../expected-reply.ts';
import { textOrStdin } from '../input.ts';
import { type FollowOptions, RunFollower } from '../run-follower.ts';

/**
 * Replies to a run that awaits, and follows it. Without a text, the question is asked on the terminal. Events up to the
 * await request are not printed again.
 * @throws UsageError if the reply is not what the question expects, or there is no question
 */
export async function resume(run_id: string, text: string | undefined, options: FollowOptions): Promise<number> {
  const follower = new RunFollower(options);
  const { await_request, status } = await follower.client.get(run_id);
  const asked = (event: Event): boolean => 'run' in event && isDeepStrictEqual(event.run.await_request, await_request);
  if (text === undefined) {
    if (await_request === undefined)
      throw new UsageError(`run ${run_id} is ${status}; only an awaiting run takes a reply`);
    // Ctrl-C does not cancel: another person may answer later.
    return follower.follow(run_id, { skip: (event) => !asked(event), onInterrupt: 'leave' });
  }
  const given = await textOrStdin(text);
  await follower.client.resume(run_id, await_request === undefined ? given : replyOf(await_request, given));
  let pastRequest = false;
  const skip = (event: Event): boolean => {
    if (pastRequest) return false;
    // Only the await request is compared: the event does not repeat the run's output.
    pastRequest = asked(event);
    return true;
  };
  return follower.follow(run_id, { skip, onInterrupt: 'cancel' });
}
