import { type FollowOptions, RunFollower } from '../run-follower.ts';

export interface WatchOptions extends FollowOptions {
  readonly after: number;
}

/** Follows an existing run. Another client may own it, so Ctrl-C does not cancel it. */
export const watch = (run_id: string, options: WatchOptions): Promise<number> =>
  new RunFollower(options).follow(run_id, { after: options.after, onInterrupt: 'leave' });
