import { fail } from '../core/errors.ts';
import { isFinal } from '../core/status.ts';
import type { Batch, RunRow } from '../core/store.ts';
import { lastOf } from './batch.ts';
import type { Pages } from './pages.ts';
import { RunLog, settles } from './run-log.ts';

export interface WatchOptions {
  /** Id of the last event already seen. Default 0: from the beginning. */
  readonly after?: number;
  /** Where to stop: at what is there now, at the next final event or await, or at the final one (default). */
  readonly until?: 'now' | 'settled' | 'final';
  /** Ends the watch. */
  readonly signal?: AbortSignal;
}

export interface Watch {
  /** The run is over and there is nothing after the cursor, nor will there be. */
  readonly exhausted: boolean;
  /** The events after the cursor, without a gap or a double. Rejects `store_failed`, `log_removed`. */
  readonly batches: AsyncGenerator<Batch, void, undefined>;
}

/** Where a reader looks for a run: its log while it is live in this process, its row in the store otherwise. */
export interface Runs {
  find(run_id: string): Promise<RunLog | RunRow>;
  /** Calls back once, when the run becomes live, or is ended without becoming so, or the server stops. */
  once(run_id: string, callback: () => void): () => void;
  readonly stopping: boolean;
}

/**
 * Opens a cursor. Replay and live are one loop: what is durable after the cursor is read, from the
 * log's tail or the store; where there is nothing, the reader sleeps until the log moves.
 * Nothing is queued for a reader, so a slow one costs no memory.
 * @throws RivuletError `run_unknown`, `cursor_invalid`
 */
export function openWatch(pages: Pages, runs: Runs, source: RunLog | RunRow, options: WatchOptions): Watch {
  const { after = 0, until = 'final', signal } = options;
  const last = durable(source);
  if (!Number.isSafeInteger(after) || after < 0 || after > last) throw fail('cursor_invalid', 'after', String(after));
  // Joined here, not in the generator: a run that is done in one turn would be gone from the tail.
  const sleep = new Sleep();
  const leave = source instanceof RunLog ? source.join(sleep.wake) : undefined;
  // A generator that is never begun never gets to its end; whoever is gone by then has left all the same.
  if (leave !== undefined) signal?.addEventListener('abort', leave, { once: true });
  signal?.addEventListener('abort', sleep.wake, { once: true });
  const end = until === 'now' ? last : Number.POSITIVE_INFINITY;
  return {
    exhausted: isOver(source) && after === last,
    batches: read(pages, runs, source, { after, end, settled: until === 'settled', signal, sleep, leave }),
  };
}

/** A reader that waits for its log. One listener for all its waits: to add and remove one each time costs more. */
class Sleep {
  #resolve: (() => void) | undefined;

  readonly wake = (): void => {
    this.#resolve?.();
    this.#resolve = undefined;
  };

  untilWoken(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }
}

interface Reading {
  readonly after: number;
  readonly end: number;
  readonly settled: boolean;
  readonly signal: AbortSignal | undefined;
  readonly sleep: Sleep;
  readonly leave: (() => void) | undefined;
}

async function* read(
  pages: Pages,
  runs: Runs,
  first: RunLog | RunRow,
  { after, end, settled, signal, sleep, ...reading }: Reading,
): AsyncGenerator<Batch, void, undefined> {
  let { leave } = reading;
  let source = first;
  let cursor = after;
  try {
    while (!signal?.aborted && cursor < end) {
      const last = durable(source);
      if (cursor < last) {
        const kept = source instanceof RunLog ? source.tail.after(cursor) : undefined;
        for (const batch of kept ?? (await pages.after(idOf(source), cursor))) {
          const fresh = from(batch, cursor, Math.min(end, last));
          if (fresh.lines.length === 0) break;
          cursor = lastOf(fresh);
          yield fresh;
          if (signal?.aborted || (settled && settles(fresh.lines.at(-1)))) return;
        }
      } else if (isOver(source)) {
        return;
      } else if (source instanceof RunLog && !source.detached) {
        if (source.failure !== undefined) throw source.failure;
        await sleep.untilWoken();
      } else {
        if (runs.stopping) return;
        leave?.();
        source = await elsewhere(runs, idOf(source), cursor, signal);
        leave = source instanceof RunLog ? source.join(sleep.wake) : undefined;
      }
    }
  } finally {
    leave?.();
  }
}

/** Where the run is now; waits while it is in no process and nothing new is in the store. */
async function elsewhere(runs: Runs, run_id: string, cursor: number, signal?: AbortSignal): Promise<RunLog | RunRow> {
  // Listens before it looks: what happens in between is not missed.
  let forget: () => void = () => {};
  const changed = new Promise<void>((resolve) => {
    const done = (): void => resolve();
    const off = runs.once(run_id, done);
    signal?.addEventListener('abort', done);
    forget = () => {
      off();
      signal?.removeEventListener('abort', done);
    };
  });
  try {
    const source = await runs.find(run_id);
    const nothing = durable(source) <= cursor && !isOver(source) && (!(source instanceof RunLog) || source.detached);
    if (!nothing || runs.stopping) return source;
    await changed;
    return await runs.find(run_id);
  } finally {
    forget();
  }
}

const idOf = (source: RunLog | RunRow): string => (source instanceof RunLog ? source.row.run_id : source.run_id);
const durable = (source: RunLog | RunRow): number => (source instanceof RunLog ? source.durable : source.last);
const isOver = (source: RunLog | RunRow): boolean => (source instanceof RunLog ? source.ended : isFinal(source.status));

// Whole batches are the rule, and go on as they are: what was made of them once serves every reader.
function from(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
