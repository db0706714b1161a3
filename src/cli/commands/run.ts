import { makeArtifactFolder } from '../artifacts.ts';
import { readInput } from '../input.ts';
import { type FollowOptions, RunFollower } from '../run-follower.ts';
import { withAgent } from '../suggest.ts';
import { terminal } from '../terminal.ts';

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
