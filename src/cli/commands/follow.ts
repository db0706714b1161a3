import { isDeepStrictEqual } from 'node:util';
import type { Event } from '../../schema/event.ts';
import { withAgent } from '../connect.ts';
import { UsageError } from '../exit-codes.ts';
import { makeArtifactFolder } from '../terminal/artifacts.ts';
import { readInput, textOrStdin } from '../terminal/input.ts';
import { replyOf } from '../terminal/reply.ts';
import { type FollowOptions, RunFollower } from '../terminal/run-follower.ts';
import { terminal } from '../terminal/terminal.ts';

export interface RunOptions extends FollowOptions {
  readonly file: readonly string[];
  readonly session?: string;
}

/** Runs an agent and follows the run. The first request is not retried, so that a server that is down is reported at once. */
export async function run(agent: string, text: string | undefined, options: RunOptions): Promise<number> {
  const { file, session, out, json } = options;
  const input = await readInput(text, file);
  await makeArtifactFolder(out);
  const follower = new RunFollower(options);
  const { client } = follower;
  const inSession = session === undefined ? {} : { session_id: session };
  const started = await withAgent(client, agent, () => client.start(agent, input, inSession));
  if (!json) terminal.note(`run ${started.run_id}, session ${started.session_id}`);
  return follower.follow(started.run_id, { onInterrupt: 'cancel' });
}

export interface WatchOptions extends FollowOptions {
  readonly after: number;
}

/** Follows an existing run. Another client may own it, so Ctrl-C does not cancel it. */
export const watch = (run_id: string, options: WatchOptions): Promise<number> =>
  new RunFollower(options).follow(run_id, { after: options.after, onInterrupt: 'leave' });

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
