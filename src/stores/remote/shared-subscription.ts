import { allChanges, type RunNotification, type RunRow, type Watch } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import { Channels } from './channels.ts';

/** A connection that receives what other processes publish. It reconnects by itself until it is closed. */
export interface Subscription {
  /**
   * Resolves when the connection receives for the first time. Rejects where the server refuses, or on an early close.
   */
  readonly active: Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens one, which calls `channels.connect` for each connection. `onText` gets each published text, and undefined after an
 * interruption, in which texts may be lost.
 */
type Subscribe = (channels: Channels, onText: (text: string | undefined) => void) => Subscription;

/** The names of the channels of a store, or of one of its partitions. */
export interface ChannelNames {
  /** The channel to which every node is subscribed. */
  readonly all: string;
  /** The channel of a topic: see `Watch`. */
  of(topic: string): string;
}

type Observer = (moves: readonly RunNotification[] | undefined) => void;

/**
 * The observers of a store's notifications. They share one subscription, which is open while there are any. So an observer
 * also hears of what the others follow.
 */
export class SharedSubscription {
  readonly #names: readonly ChannelNames[];
  readonly #partOf: (topic: string) => number;
  readonly #subscribe: Subscribe;
  readonly #observers = new Set<Observer>();
  readonly #channels: Channels;
  #subscription: Subscription | undefined;
  #closed = false;

  /** `names`: of each partition; `partOf` says to which one a run belongs. */
  constructor(names: readonly ChannelNames[], subscribe: Subscribe, partOf: (run_id: string) => number = () => 0) {
    this.#names = names;
    this.#partOf = partOf;
    // A user that may not subscribe to the channels of runs is refused at the start, and not when a reader comes.
    this.#channels = new Channels(names.flatMap((one) => [one.all, one.of('check')]));
    this.#subscribe = subscribe;
  }

  async add(observer: Observer): Promise<Watch> {
    if (this.#closed) throw new Error('the store is closed');
    this.#observers.add(observer);
    const close = async (): Promise<void> => {
      this.#observers.delete(observer);
      if (this.#observers.size === 0) await this.#end();
    };
    this.#subscription ??= this.#subscribe(this.#channels, (text) => this.#notify(text));
    await this.#subscription.active.catch(async (error: unknown) => {
      await close();
      throw error;
    });
    return {
      follow: async (topic) => {
        await Promise.all(this.#channelsOf(topic).map((channel) => this.#channels.join(channel)));
      },
      unfollow: (topic) => {
        for (const channel of this.#channelsOf(topic)) this.#channels.leave(channel);
      },
      close,
    };
  }

  #channelsOf(topic: string): readonly string[] {
    const part = topic === allChanges ? undefined : this.#names[this.#partOf(topic)];
    return (part === undefined ? this.#names : [part]).map((names) => names.of(topic));
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
    for (const observer of [...this.#observers]) {
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
type Kind = 'grown' | 'changed' | 'forwarded' | 'waits';
const digits: Readonly<Record<Kind, number>> = { grown: 0, changed: 2, forwarded: 3, waits: 4 };

/** The line of a notification for writes of one kind that led to a row. Redis builds the same line in the commit script. */
export const notificationLine = ({ run_id, epoch, last, status }: NotifiedRun, kind: Kind): string =>
  `${epoch} ${last} ${isFinal(status) ? 1 : digits[kind]} ${run_id}`;

/** All changes of each run; undefined for a text of another program, after which any run may have changed. */
function parseNotification(text: string): RunNotification[] | undefined {
  const moves = new Map<string, RunNotification>();
  for (const line of text.split('\n')) {
    const [, epoch, last, kind = '', run_id] = /^(\d+) (\d+) ([0-4]) (.+)$/.exec(line) ?? [];
    if (run_id === undefined) return undefined;
    const before = moves.get(run_id);
    const final = kind === '1' || before?.final === true;
    const changed = '124'.includes(kind) || before?.changed === true;
    const forwarded = kind === '3' || before?.forwarded === true;
    const waits = kind === '4' || before?.waits === true;
    moves.set(run_id, { run_id, epoch: Number(epoch), last: Number(last), final, changed, forwarded, waits });
  }
  return [...moves.values()];
}
