import type { RunRow } from '../../core/store.ts';
import { backoff, Delay } from '../remote/retry.ts';
import { notificationLine } from '../remote/shared-subscription.ts';

/** Sends each text as a notification. */
type Notify = (texts: readonly string[]) => Promise<unknown>;

/** PostgreSQL accepts less than 8000 bytes in a notification. */
const maxBytes = 7_900;

/** Runs in pending notifications. With more, one notification says that any run may have changed. */
const maxRuns = 10_000;

/** Milliseconds between two sends, so that a node that commits all the time notifies of many runs at once. */
const sendInterval = 5;

/**
 * Notifies other nodes of the runs that a store has changed, after the commit and not in its transaction. PostgreSQL
 * commits transactions that notify one after the other, server-wide, and each waits for the disk. The cost: the
 * notification is lost where the node dies after the commit.
 */
export class Notifier {
  readonly #notify: Notify;
  readonly #delay = new Delay();
  readonly #lines = new Map<string, string>();
  #sending: Promise<void> | undefined;
  #closing = false;

  constructor(notify: Notify) {
    this.#notify = notify;
  }

  notify(rows: readonly RunRow[]): void {
    for (const row of rows) this.#lines.set(row.run_id, notificationLine(row));
    // Without lines, `#send` would end before its promise is assigned here.
    if (this.#lines.size > 0) this.#sending ??= this.#send();
  }

  /** Resolves when all pending notifications were sent or have failed. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#delay.end();
    await this.#sending;
  }

  async #send(): Promise<void> {
    let failed = false;
    for (let attempts = 0; failed || this.#lines.size > 0; attempts = failed ? attempts + 1 : 0) {
      // An empty text means that any run may have changed.
      const texts: string[] = failed || this.#lines.size > maxRuns ? [''] : pack(this.#lines.values());
      this.#lines.clear();
      failed = await this.#notify(texts).then(
        () => false,
        () => true,
      );
      if (!this.#closing) await this.#delay.wait(failed ? backoff(attempts) : sendInterval);
      if (this.#closing && failed) break;
    }
    this.#sending = undefined;
  }
}

/** Joins lines to as few texts as possible. */
function pack(lines: Iterable<string>): string[] {
  const texts: string[] = [];
  let text = '';
  for (const line of lines) {
    if (text !== '' && Buffer.byteLength(text) + Buffer.byteLength(line) > maxBytes) {
      texts.push(text);
      text = '';
    }
    text = text === '' ? line : `${text}\n${line}`;
  }
  return [...texts, text];
}
