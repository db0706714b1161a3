import { mkdir } from 'node:fs/promises';
import { Followed, type FollowOptions } from '../follow.ts';
import { inputOf } from '../input.ts';
import { terminal } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

export interface RunOptions extends FollowOptions {
  readonly file: readonly string[];
  readonly session?: string;
}

/** Runs an agent and follows it. The first request is made once: that a server is down is told at once. */
export async function run(agent: string, text: string | undefined, options: RunOptions): Promise<number> {
  const { file, session, out, json } = options;
  const input = await inputOf(text, file);
  // Now, not when the first artifact comes.
  if (out !== undefined) {
    await mkdir(out, { recursive: true }).catch((error: Error) => {
      throw new UsageError(`--out ${out}: ${error.message}`);
    });
  }
  const followed = new Followed(options);
  const begun = await followed.client.start(agent, input, session === undefined ? {} : { session_id: session });
  if (!json) terminal.note(`run ${begun.run_id}, session ${begun.session_id}`);
  return followed.follow(begun.run_id, { interrupt: 'cancel' });
}
