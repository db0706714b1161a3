import { fail } from '../../core/errors.ts';
import type { Store, Write } from '../../core/store.ts';
import { within } from '../store-access.ts';

/** A log that has something to be kept, as the group commit sees it. */
export interface Uncommitted {
  /** What is pending; from now on it is in flight. */
  take(): Write[];
  /** What was in flight is durable. */
  committed(): void;
  /** The store failed. */
  broke(cause: unknown): void;
  /** The store refused it: somebody else has written to the run, or the key was used. */
  refused(): void;
  /** Resolves when all that was appended is durable. */
  flushed(): Promise<void>;
}

/**
 * Group commit: what all runs append in one turn of the event loop goes to the store as one commit,
 * and what they append while it is under way goes with the next. A reader is shown nothing before.
 */
export class Commits {
  readonly #store: Store;
  #dirty: Uncommitted[] = [];
  #scheduled = false;
  readonly #idle: (() => void)[] = [];
  readonly #patience: number;
  /** Since when a commit is under way, in milliseconds of `performance.now`. */
  #since: number | undefined;

  /** `patience`: milliseconds that a request waits for a store that does not answer. */
  constructor(store: Store, patience: number) {
    this.#store = store;
    this.#patience = patience;
  }

  /**
   * What a request asks before it begins something: runs can wait for a store that is away, but not people.
   * @throws RivuletError `store_away`
   */
  check(): void {
    if (this.#since !== undefined && performance.now() - this.#since > this.#patience) throw fail('store_away');
  }

  /** Resolves when all of a log is durable. What is given up may become durable all the same. @throws as above */
  kept(log: Uncommitted): Promise<void> {
    return within(log.flushed(), this.#patience);
  }

  /** Has the log's pending events committed at the end of this turn; called once before each `take`. */
  mark(log: Uncommitted): void {
    this.#dirty.push(log);
    this.#schedule();
  }

  /** Resolves when nothing is waiting to be kept. */
  async drained(): Promise<void> {
    if (this.#scheduled) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // setImmediate, not a microtask: an async generator yields its tokens in separate microtasks,
    // and all of them belong into one commit.
    setImmediate(() => void this.#flush());
  }

  // Never rejects: what goes wrong is told to the logs that it concerns.
  async #flush(): Promise<void> {
    const logs = this.#dirty;
    this.#dirty = [];
    const writes: Write[] = [];
    const ends = logs.map((log) => writes.push(...log.take()));
    this.#since = performance.now();
    try {
      const kept = await this.#store.commit(writes);
      let next = 0;
      logs.forEach((log, index) => {
        let all = true;
        for (const end = ends[index] ?? 0; next < end; next += 1) all &&= kept[next] === 'taken';
        if (all) log.committed();
        else log.refused();
      });
    } catch (error) {
      for (const log of logs) log.broke(error);
    }
    this.#since = undefined;
    this.#scheduled = false;
    if (this.#dirty.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }
}
