import { EventEmitter } from 'eventemitter3';
import type { Partitions, Store } from '../../core/ports/store.ts';
import { type CommitEvents, GroupCommit, type GroupCommitOptions } from './group-commit.ts';

/**
 * The group commits of a store: one for each of its partitions, so that one which does not answer keeps only its own runs
 * waiting. Most stores have one.
 */
export class GroupCommits {
  readonly events = new EventEmitter<CommitEvents>();
  readonly #all: readonly GroupCommit[];
  readonly #partitions: Partitions | undefined;

  constructor(store: Pick<Store, 'commit' | 'partitions'>, options: GroupCommitOptions) {
    this.#partitions = store.partitions;
    this.#all = Array.from(
      { length: store.partitions?.count ?? 1 },
      () => new GroupCommit(store, options, this.events),
    );
  }

  /** The group commit of the run, or of the session, with an id. */
  of(id: string): GroupCommit {
    const one = this.#all[this.#partitions?.of(id) ?? 0];
    if (one === undefined) throw new RangeError(`the store has no partition for ${id}`);
    return one;
  }

  /** Whether the last commit of some partition failed, or a partition does not answer. */
  get failing(): boolean {
    return this.#all.some(({ failing }, part) => failing || this.#partitions?.answers(part) === false);
  }

  /** Whether each partition has a commit under way, or one that will be repeated. */
  get busy(): boolean {
    return this.#all.every(({ busy }) => busy);
  }

  /**
   * For a request that concerns no run or session yet. See `GroupCommit.checkAvailable`.
   * @throws RivuletError `store_unavailable` where no partition is available
   */
  checkAvailable(): void {
    this.#all.find(({ available }) => available) ?? this.#all[0]?.checkAvailable();
  }

  /** Resolves when no writes are pending; those that the store did not commit in time are dropped. */
  async drained(): Promise<void> {
    await Promise.all(this.#all.map((one) => one.drained()));
  }
}
