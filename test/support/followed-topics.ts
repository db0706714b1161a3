import { isForAllNodes, waitsAfter } from '../../src/core/ports/run-claims.ts';
import {
  allChanges,
  forwardsOnly,
  type RunNotification,
  type RunRow,
  type Write,
} from '../../src/core/ports/run-store.ts';
import { isFinal } from '../../src/core/run-state.ts';

/** A notification, and the topics whose followers get it; undefined for every node. */
export interface Told {
  readonly notification: RunNotification;
  readonly topics: readonly string[] | undefined;
}

/** What a store tells of a write that has led to a row. */
export function toldOf(write: Write, { run_id, epoch, last, status }: RunRow): Told {
  const changed = write.grown !== true;
  const [forwarded, waits] = [forwardsOnly(write), waitsAfter(write)];
  const notification = { run_id, epoch, last, final: isFinal(status), changed, forwarded, waits };
  const topics = changed ? [allChanges, run_id] : [run_id];
  return { notification, topics: isForAllNodes(write) ? undefined : topics };
}

/** What one subscriber follows. */
export class FollowedTopics {
  readonly #counts = new Map<string, number>();

  follow(topic: string): void {
    this.#counts.set(topic, (this.#counts.get(topic) ?? 0) + 1);
  }

  unfollow(topic: string): void {
    const count = this.#counts.get(topic) ?? 0;
    if (count > 1) this.#counts.set(topic, count - 1);
    else this.#counts.delete(topic);
  }

  /** What the subscriber hears of it. */
  heardOf(told: readonly Told[]): RunNotification[] {
    return told
      .filter(({ topics }) => topics === undefined || topics.some((topic) => this.#counts.has(topic)))
      .map(({ notification }) => notification);
  }
}
