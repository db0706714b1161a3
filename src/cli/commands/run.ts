import { mkdir } from 'node:fs/promises';
import { UsageError } from '../exit-codes.ts';
import { readInput } from '../input.ts';
import { type FollowOptions, RunFollower } from '../run-follower.ts';
import { terminal } from '../terminal.ts';

export interface RunOptions extends FollowOptions {
  readonly file: readonly string[];
  readonly session?: string;
}

/** Runs an agent and follows the run. The first request is not retried, so that a server that is down is reported at once. */
export async function run(agent: string, text: string | undefined, options: RunOptions): Promise<number> {
  const { file, session, out, json } = options;
  const input = await readInput(text, file);
  // Fail now, not when the first artifact arrives.
  if (out !== undefined) {
    await mkdir(out, { recursive: true }).catch((error: Error) => {
      throw new UsageError(`--out ${out}: ${error.message}`);
    });
  }
  const follower = new RunFollower(options);
  const started = await follower.client.start(agent, input, session === undefined ? {} : { session_id: session });
  if (!json) terminal.note(`run ${started.run_id}, session ${started.session_id}`);
  return follower.follow(started.run_id, { onInterrupt: 'cancel' });
}
