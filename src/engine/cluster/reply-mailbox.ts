import { runEventOf } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { AwaitResume } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { newId } from '../ids.ts';
import { Cursor } from '../log/cursor.ts';
import type { Extras } from '../log/draft.ts';
import type { Pages } from '../log/page-cache.ts';
import type { LiveRuns } from '../runs/active-runs.ts';
import type { Begun } from '../runs/begun.ts';

/** A reply that waits in the journal for the process that has the run. */
interface Left {
  readonly left: string;
  /** The id of the event that asked. */
  readonly at: number;
  readonly reply: AwaitResume;
  /** What the process keeps together with its taking it. */
  readonly extras: Extras;
}

/** What that process says of it then; of several that were left, it takes one. */
interface Taken {
  readonly taken: string;
}

/** Replies to pinned runs that another process has in its memory: left in the store, and taken by that process. */
export class LeftReplies {
  readonly #store: Store;
  readonly #pages: Pages;
  readonly #live: LiveRuns;
  readonly #patience: number;

  /** `patience`: milliseconds that the process has to take a reply. */
  constructor(store: Store, pages: Pages, live: LiveRuns, patience: number) {
    this.#store = store;
    this.#pages = pages;
    this.#live = live;
    this.#patience = patience;
  }

  /** Leaves a reply, and waits until the run goes on. @throws RivuletError `lost_race`, `process_silent`, `store_away` */
  async leave(row: RunRow, reply: AwaitResume, extras: Extras): Promise<Begun> {
    const { run_id, last, snapshot } = row;
    const left: Left = { left: newId(), at: snapshot, reply, extras };
    // No change to the row, which is the other process's.
    const [kept] = await this.#store.commit([{ row, expect: last, lines: [], journal: [JSON.stringify(left)] }]);
    if (kept !== 'taken') throw fail('lost_race', run_id);
    await this.#goneOn(row);
    const taken = (await this.#journal(run_id)).some((entry) => 'taken' in entry && entry.taken === left.left);
    if (!taken) throw fail('lost_race', run_id);
    return { run_id, run: await this.#live.json(run_id), after: last };
  }

  /** Gives a run that this process has the reply that was left for it, where there is one. */
  async take(execution: Execution): Promise<void> {
    const { run_id, snapshot } = execution.log.row;
    const left = (await this.#journal(run_id)).find((entry): entry is Left => 'at' in entry && entry.at === snapshot);
    // It may have gone on, or left, while the journal was read.
    const same = execution.run.status === 'awaiting' && execution.log.row.snapshot === snapshot;
    if (left === undefined || !same || execution.log.detached) return;
    const taken: Taken = { taken: left.left };
    execution.resume(left.reply, { ...left.extras, journal: [JSON.stringify(taken)] });
  }

  async #journal(run_id: string): Promise<(Left | Taken)[]> {
    return (await this.#store.journal(run_id)).map((line) => JSON.parse(line));
  }

  async #goneOn(row: RunRow): Promise<void> {
    const cursor = new Cursor(this.#pages, this.#live, row, { after: row.last });
    const timer = setTimeout(() => cursor.close(), this.#patience);
    try {
      for await (const { lines } of cursor) if (lines.some((line) => runEventOf(line) !== undefined)) return;
    } finally {
      clearTimeout(timer);
    }
    throw fail('process_silent', row.run_id);
  }
}
