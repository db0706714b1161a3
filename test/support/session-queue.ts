import type { Store } from '../../src/core/ports/store.ts';
import { GroupCommits } from '../../src/engine/log/group-commits.ts';
import { SessionQueue } from '../../src/engine/runs/session-queue.ts';
import { Followed } from '../../src/engine/store/followed.ts';

export const commitsOf = (store: Store): GroupCommits =>
  new GroupCommits(store, { requestTimeout: 5_000, storeTimeout: 5_000, onFailure: () => {} });

/** The queued runs of a store, and the ids of those that have begun. */
export function queueOf(store: Store): { readonly queue: SessionQueue; readonly begun: string[] } {
  const begun: string[] = [];
  const queue = new SessionQueue(store, {
    limit: 0,
    stopping: () => false,
    followed: new Followed(),
    offers: { offer: (run_id) => begun.push(run_id) },
    onRejected: () => undefined,
    commits: commitsOf(store),
  });
  return { queue, begun };
}
