import { isFinal } from '../../core/run-state.ts';
import type { RunNotification, RunRow } from '../../core/store.ts';

/** A connection that hears what other processes publish. It mends itself, for ever. */
export interface Subscription {
  /** Resolves when it hears for the first time. Rejects where the server refuses it, and when it is closed before. */
  readonly active: Promise<void>;
  close(): Promise<void>;
}

/** Opens one; `hear` gets what is published, and nothing after an interruption, in which something may have been. */
type Subscribe = (hear: (text: string | undefined) => void) => Subscription;

type Watcher = (moves: readonly RunNotification[] | undefined) => void;

/** Who watches a store. However many they are, they share one subscription, which is there as long as any of them. */
export class Watchers {
  readonly #subscribe: Subscribe;
  // In an object each: the same function may watch twice.
  readonly #watchers = new Set<{ readonly moved: Watcher }>();
  #subscription: Subscription | undefined;
  #closed = false;

  constructor(subscribe: Subscribe) {
    this.#subscribe = subscribe;
  }

  /** Returns how to end it. */
  async add(moved: Watcher): Promise<() => Promise<void>> {
    if (this.#closed) throw new Error('the store is closed');
    const watcher = { moved };
    this.#watchers.add(watcher);
    const end = (): Promise<void> => this.#remove(watcher);
    this.#subscription ??= this.#subscribe((text) => this.#tell(text));
    await this.#subscription.active.catch(async (error: unknown) => {
      await end();
      throw error;
    });
    return end;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    await this.#unsubscribe();
  }

  async #remove(watcher: { readonly moved: Watcher }): Promise<void> {
    this.#watchers.delete(watcher);
    if (this.#watchers.size === 0) await this.#unsubscribe();
  }

  async #unsubscribe(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await subscription?.close();
  }

  #tell(text: string | undefined): void {
    const moves = text === undefined ? undefined : movesIn(text);
    for (const { moved } of [...this.#watchers]) {
      try {
        moved(moves);
      } catch {
        // Its own affair: the others are told all the same, and the connection stays.
      }
    }
  }
}

/** What a write of that row is published as; Redis makes the same itself. */
export const moveLine = ({ run_id, epoch, last, status }: RunRow): string =>
  `${epoch} ${last} ${isFinal(status) ? 1 : 0} ${run_id}`;

/** The last move of each run; undefined for what nobody here has published, which may mean anything. */
function movesIn(text: string): RunNotification[] | undefined {
  const moves = new Map<string, RunNotification>();
  for (const line of text.split('\n')) {
    const [, epoch, last, final, run_id] = /^(\d+) (\d+) ([01]) (.+)$/.exec(line) ?? [];
    if (run_id === undefined) return undefined;
    moves.set(run_id, { run_id, epoch: Number(epoch), last: Number(last), final: final === '1' });
  }
  return [...moves.values()];
}
