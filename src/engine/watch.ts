import { fail } from '../core/errors.ts';
import { isFinal } from '../core/status.ts';
import type { Batch, RunRow, Store } from '../core/store.ts';
import { lastOf, RunLog, settles } from './run-log.ts';

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
  /** The events after the cursor, without a gap or a double. Rejects `store_failed`. */
  readonly batches: AsyncGenerator<Batch, void, undefined>;
}

const page = 1000;

/**
 * Opens a cursor. Replay and live are one loop: what is durable after the cursor is read, from the
 * log's tail or the store; where there is nothing, the reader sleeps until the log moves.
 * Nothing is queued for a reader, so a slow one costs no memory.
 */
export function openWatch(store: Store, source: RunLog | RunRow, options: WatchOptions): Watch {
  const { after = 0, until = 'final', signal } = options;
  const last = source instanceof RunLog ? source.durable : source.last;
  if (!Number.isSafeInteger(after) || after < 0 || after > last) {
    throw fail('cursor_invalid', 'after', String(after));
  }
  const over = source instanceof RunLog ? source.ended : isFinal(source.status);
  // Joined here, not in the generator: a run that is done in one turn would be gone from the tail.
  const leave = source instanceof RunLog ? source.join() : undefined;
  return {
    exhausted: over && after === last,
    batches: read(store, source, after, until, signal, leave),
  };
}

async function* read(
  store: Store,
  source: RunLog | RunRow,
  after: number,
  until: 'now' | 'settled' | 'final',
  signal: AbortSignal | undefined,
  leave: (() => void) | undefined,
): AsyncGenerator<Batch, void, undefined> {
  const live = source instanceof RunLog ? source : undefined;
  const run_id = source instanceof RunLog ? source.row.run_id : source.run_id;
  const end = until === 'now' ? durable(source) : Number.POSITIVE_INFINITY;
  let cursor = after;
  try {
    while (!signal?.aborted && cursor < end) {
      if (cursor < durable(source)) {
        const batches = live?.after(cursor) ?? (await store.events(run_id, cursor, page));
        if (batches.length === 0) throw new Error(`the log of run ${run_id} has no event ${cursor + 1}`);
        for (const batch of batches) {
          const fresh = from(batch, cursor, Math.min(end, durable(source)));
          if (fresh.lines.length === 0) break;
          cursor = lastOf(fresh);
          yield fresh;
          if (until === 'settled' && settles(fresh.lines.at(-1))) return;
          if (signal?.aborted) return;
        }
      } else if (live === undefined || live.ended) {
        return;
      } else if (live.failure !== undefined) {
        throw live.failure;
      } else {
        await live.moved(signal);
      }
    }
  } finally {
    leave?.();
  }
}

const durable = (source: RunLog | RunRow): number => (source instanceof RunLog ? source.durable : source.last);

// Whole batches are the rule, and go on as they are: what was made of them once serves every reader.
function from(batch: Batch, after: number, end: number): Batch {
  if (batch.first > after && lastOf(batch) <= end) return batch;
  const skip = Math.max(0, after + 1 - batch.first);
  return { first: batch.first + skip, lines: batch.lines.slice(skip, end + 1 - batch.first) };
}
