import { UnorderedSet } from '../../core/collections.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunNotification, RunRow } from '../../core/store.ts';

/** A connection that receives what other processes publish. It reconnects by itself until it is closed. */
export interface Subscription {
  /**
   * Resolves when the connection receives for the first time. Rejects where the server refuses, or on an early close.
   */
  readonly active: Promise<void>;
  close(): Promise<void>;
}

/** Opens one. `onText` gets each published text, and undefined after an interruption, in which texts may be lost. */
type Subscribe = (onText: (text: string | undefined) => void) => Subscription;

type Observer = (moves: readonly RunNotification[] | undefined) => void;

/** The observers of a store's notifications. They share one subscription, which is open while there are any. */
export class SharedSubscription {
  readonly #subscribe: Subscribe;
  readonly #observers = new UnorderedSet<Observer>();
  #subscription: Subscription | undefined;
  #closed = false;

  constructor(subscribe: Subscribe) {
    this.#subscribe = subscribe;
  }

  /** Returns an unsubscribe function. */
  async add(observer: Observer): Promise<() => Promise<void>> {
    if (this.#closed) throw new Error('the store is closed');
    const remove = this.#observers.add(observer);
    const unsubscribe = async (): Promise<void> => {
      remove();
      if (this.#observers.size === 0) await this.#end();
    };
    this.#subscription ??= this.#subscribe((text) => this.#notify(text));
    await this.#subscription.active.catch(async (error: unknown) => {
      await unsubscribe();
      throw error;
    });
    return unsubscribe;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
  }

  async #end(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    await subscription?.close();
  }

  #notify(text: string | undefined): void {
    if (this.#closed) return;
    const moves = text === undefined ? undefined : parseNotification(text);
    for (const observer of this.#observers.all()) {
      try {
        observer(moves);
      } catch {
        // An observer's error must not keep the others from being notified, nor end the connection.
      }
    }
  }
}

/** What a notification says of a run. */
export type NotifiedRun = Pick<RunRow, 'run_id' | 'epoch' | 'last' | 'status'>;

/** What writes have done to a run: see `RunNotification`. */
type Kind = 'grown' | 'changed' | 'forwarded';
const digits: Readonly<Record<Kind, number>> = { grown: 0, changed: 2, forwarded: 3 };

/** The line of a notification for writes of one kind that led to a row. Redis builds the same line in the commit script. */
export const notificationLine = ({ run_id, epoch, last, status }: NotifiedRun, kind: Kind): string =>
  `${epoch} ${last} ${isFinal(status) ? 1 : digits[kind]} ${run_id}`;

/** All changes of each run; undefined for a text of another program, after which any run may have changed. */
function parseNotification(text: string): RunNotification[] | undefined {
  const moves = new Map<string, RunNotification>();
  for (const line of text.split('\n')) {
    const [, epoch, last, kind = '', run_id] = /^(\d+) (\d+) ([0-3]) (.+)$/.exec(line) ?? [];
    if (run_id === undefined) return undefined;
    const before = moves.get(run_id);
    const final = kind === '1' || before?.final === true;
    const changed = '12'.includes(kind) || before?.changed === true;
    const forwarded = kind === '3' || before?.forwarded === true;
    moves.set(run_id, { run_id, epoch: Number(epoch), last: Number(last), final, changed, forwarded });
  }
  return [...moves.values()];
}
