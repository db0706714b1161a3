import type { RunRow } from '../../core/store.ts';
import { backoff, Pause } from '../remote/outage.ts';
import { moveLine } from '../remote/watchers.ts';

/** Sends each text as a notification. */
type Notify = (texts: readonly string[]) => Promise<unknown>;

/** A notification has to be shorter than 8000 bytes. */
const maxBytes = 7_900;

/** Runs that wait to be told; beyond that it is only told that something has moved. */
const maxRuns = 10_000;

/** At least so long between two messages, in milliseconds: a process that commits all the time tells of many at once. */
const apart = 5;

/**
 * Tells other processes which runs a store has moved, after the commit and not with it: transactions that notify commit
 * one after the other, in all of the server, and each waits for the disk. It costs that a process which dies at that
 * moment does not tell any more.
 */
export class Notifier {
  readonly #notify: Notify;
  readonly #pause = new Pause();
  readonly #lines = new Map<string, string>();
  #sending: Promise<void> | undefined;
  #closing = false;

  constructor(notify: Notify) {
    this.#notify = notify;
  }

  tell(rows: readonly RunRow[]): void {
    for (const row of rows) this.#lines.set(row.run_id, moveLine(row));
    // With nothing to send it would end before it is kept here.
    if (this.#lines.size > 0) this.#sending ??= this.#send();
  }

  /** Resolves when everything is told, or could not be. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#pause.end();
    await this.#sending;
  }

  async #send(): Promise<void> {
    let missed = false;
    for (let tries = 0; missed || this.#lines.size > 0; tries = missed ? tries + 1 : 0) {
      // Nothing in it means that anything may have moved.
      const texts: string[] = missed || this.#lines.size > maxRuns ? [''] : packed(this.#lines.values());
      this.#lines.clear();
      missed = await this.#notify(texts).then(
        () => false,
        () => true,
      );
      if (!this.#closing) await this.#pause.of(missed ? backoff(tries) : apart);
      if (this.#closing && missed) break;
    }
    this.#sending = undefined;
  }
}

/** As few texts as the lines fit into. */
function packed(lines: Iterable<string>): string[] {
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
