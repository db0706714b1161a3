import { forwardsOnly, lastAfter, type Write } from '../../core/store.ts';
import { Delay, retry } from '../../core/timing.ts';
import { type NotifiedRun, notificationLine } from '../remote/shared-subscription.ts';

/** Sends each text as a notification. */
type Notify = (texts: readonly string[]) => Promise<unknown>;

/** PostgreSQL accepts less than 8000 bytes in a notification. */
const maxBytes = 7_900;

/** Runs in pending notifications. With more, one notification says that any run may have changed. */
const maxRuns = 10_000;

/** Milliseconds between two sends, so that a node that commits all the time notifies of many runs at once. */
const sendInterval = 5;

/** A run, whether one of its writes has changed more than `last`, and whether one has only added to its journal. */
interface PendingRun {
  readonly run: NotifiedRun;
  readonly changed: boolean;
  readonly forwarded: boolean;
}

/**
 * Notifies other nodes of the runs that a store has changed, after the commit and not in its transaction. PostgreSQL
 * commits transactions that notify one after the other, server-wide, and each waits for the disk. The cost: the
 * notification is lost where the node dies after the commit.
 */
export class Notifier {
  readonly #notify: Notify;
  readonly #delay = new Delay();
  readonly #pending = new Map<string, PendingRun>();
  #sending: Promise<void> | undefined;

  constructor(notify: Notify) {
    this.#notify = notify;
  }

  notify(writes: readonly Write[]): void {
    for (const write of writes) {
      const { run_id, epoch, status } = write.row;
      const before = this.#pending.get(run_id);
      const changed = write.grown !== true || before?.changed === true;
      const forwarded = forwardsOnly(write) || before?.forwarded === true;
      this.#pending.set(run_id, { run: { run_id, epoch, status, last: lastAfter(write) }, changed, forwarded });
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
        const texts: string[] = failed || this.#pending.size > maxRuns ? [''] : pack(this.#pending.values());
        this.#pending.clear();
        failed = true;
        await this.#notify(texts);
      };
      // Fails only where the store is closed. Other nodes then find the changes when they poll.
      await retry(send, { delay: this.#delay }).catch(() => {});
      await this.#delay.wait(sendInterval);
    }
    this.#sending = undefined;
  }
}

function linesOf({ run, changed, forwarded }: PendingRun): string[] {
  const lines = changed || !forwarded ? [notificationLine(run, changed ? 'changed' : 'grown')] : [];
  return forwarded ? [...lines, notificationLine(run, 'forwarded')] : lines;
}

/** Joins the lines of notifications to as few texts as possible. */
function pack(pending: Iterable<PendingRun>): string[] {
  const texts: string[] = [];
  let text = '';
  for (const line of [...pending].flatMap(linesOf)) {
    if (text !== '' && Buffer.byteLength(text) + Buffer.byteLength(line) > maxBytes) {
      texts.push(text);
      text = '';
    }
    text = text === '' ? line : `${text}\n${line}`;
  }
  return [...texts, text];
}
