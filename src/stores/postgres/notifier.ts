import { createHash } from 'node:crypto';
import { isForAllNodes, waitsAfter } from '../../core/ports/run-claims.ts';
import { allChanges, forwardsOnly, lastAfter, type Write } from '../../core/ports/run-store.ts';
import { Delay, retry } from '../../core/timing.ts';
import { type ChannelNames, type NotifiedRun, notificationLine } from '../remote/shared-subscription.ts';

/** Sends each text as a notification, on the channel with the same index. */
type Notify = (channels: readonly string[], texts: readonly string[]) => Promise<unknown>;

/** The channels of a schema. A name has at most 63 bytes, and the id of a run 36 of them. */
export function channelNames(schema: string): ChannelNames {
  const start = createHash('sha1').update(schema).digest('hex').slice(0, 16);
  return { all: schema, of: (topic) => `${start}:${topic}` };
}

/** PostgreSQL accepts less than 8000 bytes in a notification. */
const maxBytes = 7_900;

/** Runs in pending notifications. With more, one notification says that any run may have changed. */
const maxRuns = 10_000;

/** Milliseconds between two sends, so that a node that commits all the time notifies of many runs at once. */
const sendInterval = 5;

/** A run, and what its writes have done: see `RunNotification`. */
interface PendingRun {
  readonly run: NotifiedRun;
  readonly changed: boolean;
  readonly forwarded: boolean;
  readonly waits: boolean;
  readonly forAll: boolean;
}

/**
 * Notifies other nodes of the runs that a store has changed, after the commit and not in its transaction. PostgreSQL
 * commits transactions that notify one after the other, server-wide, and each waits for the disk. The cost: the
 * notification is lost where the node dies after the commit.
 */
export class Notifier {
  readonly #names: ChannelNames;
  readonly #notify: Notify;
  readonly #delay = new Delay();
  readonly #pending = new Map<string, PendingRun>();
  #sending: Promise<void> | undefined;

  constructor(names: ChannelNames, notify: Notify) {
    this.#names = names;
    this.#notify = notify;
  }

  notify(writes: readonly Write[]): void {
    for (const write of writes) {
      const { run_id, epoch, status } = write.row;
      const before = this.#pending.get(run_id);
      const changed = write.grown !== true || before?.changed === true;
      const forwarded = forwardsOnly(write) || before?.forwarded === true;
      const waits = waitsAfter(write) || before?.waits === true;
      const forAll = isForAllNodes(write) || before?.forAll === true;
      const run = { run_id, epoch, status, last: lastAfter(write) };
      this.#pending.set(run_id, { run, changed, forwarded, waits, forAll });
    }
    // Without any, `#send` would end before its promise is assigned here.
    if (this.#pending.size > 0) this.#sending ??= this.#send();
  }

  /** Resolves when all pending notifications were sent or have failed. */
  async close(): Promise<void> {
    this.#delay.close();
    await this.#sending;
  }

  async #send(): Promise<void> {
    while (this.#pending.size > 0) {
      let failed = false;
      const send = async (): Promise<void> => {
        // An empty text means that any run may have changed.
        const isTold = !failed && this.#pending.size <= maxRuns;
        const texts = isTold ? pack(this.#names, this.#pending.values()) : [[this.#names.all, ''] as const];
        this.#pending.clear();
        failed = true;
        await this.#notify(
          texts.map(([channel]) => channel),
          texts.map(([, text]) => text),
        );
      };
      // Fails only where the store is closed. Other nodes then find the changes when they poll.
      await retry(send, { delay: this.#delay }).catch(() => {});
      await this.#delay.wait(sendInterval);
    }
    this.#sending = undefined;
  }
}

function linesOf({ run, changed, forwarded, waits }: PendingRun): string[] {
  const kind = waits ? 'waits' : changed ? 'changed' : 'grown';
  const lines = kind !== 'grown' || !forwarded ? [notificationLine(run, kind)] : [];
  return forwarded ? [...lines, notificationLine(run, 'forwarded')] : lines;
}

/** The topics whose followers are told of a run; undefined for every node. */
const topicsOf = ({ run, changed, forAll }: PendingRun): readonly (string | undefined)[] =>
  forAll ? [undefined] : changed ? [allChanges, run.run_id] : [run.run_id];

/** The texts of each channel: its lines, joined to as few texts as possible. */
function pack(names: ChannelNames, pending: Iterable<PendingRun>): (readonly [channel: string, text: string])[] {
  const texts: (readonly [string, string])[] = [];
  const open = new Map<string, string>();
  for (const one of pending) {
    for (const topic of topicsOf(one)) {
      const channel = topic === undefined ? names.all : names.of(topic);
      for (const line of linesOf(one)) {
        const text = open.get(channel);
        const isFull = text !== undefined && Buffer.byteLength(text) + Buffer.byteLength(line) > maxBytes;
        if (isFull) texts.push([channel, text]);
        open.set(channel, text === undefined || isFull ? line : `${text}\n${line}`);
      }
    }
  }
  return [...texts, ...open];
}
