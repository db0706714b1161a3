import { Followed, type FollowOptions } from '../follow.ts';

export interface WatchOptions extends FollowOptions {
  readonly after: number;
}

/** Follows a run that there is. It may be somebody else's, so Ctrl-C only leaves. */
export const watch = (run_id: string, options: WatchOptions): Promise<number> =>
  new Followed(options).follow(run_id, { after: options.after, interrupt: 'leave' });
