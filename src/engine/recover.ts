import { encode } from '../core/encode.ts';
import { fail } from '../core/errors.ts';
import { fold } from '../core/reduce.ts';
import type { RunRow, Store } from '../core/store.ts';
import type { Event } from '../schema/event.ts';
import type { Run } from '../schema/run.ts';

const page = 1000;

/** The Run that a log folds into: from the last event that carries all of it, on to the end. */
export async function foldRow(store: Store, row: RunRow): Promise<Run> {
  let run: Run | undefined;
  for (let after = row.snapshot - 1; after < row.last; ) {
    const batches = await store.events(row.run_id, after, page);
    if (batches.length === 0) break;
    for (const { first, lines } of batches) {
      for (const line of lines.slice(Math.max(0, after + 1 - first))) {
        const event: Event = JSON.parse(line);
        run = run === undefined ? ('run' in event ? event.run : undefined) : fold(run, event);
      }
      after = first + lines.length - 1;
    }
  }
  if (run === undefined) throw new Error(`the log of run ${row.run_id} has no event ${row.snapshot}`);
  // `cancelling` has no event of its own.
  return { ...run, status: row.status };
}

/** Ends the runs that a stopped process left in the middle. Returns how many there were. */
export async function endInterrupted(store: Store, now: () => string): Promise<number> {
  for (let count = 0; ; ) {
    const rows = await store.unfinished(page);
    if (rows.length === 0) return count;
    count += rows.length;
    for (const row of rows) {
      const finished_at = now();
      const run = await foldRow(store, row);
      delete run.await_request;
      const ended: Run =
        row.status === 'cancelling'
          ? { ...run, status: 'cancelled', finished_at }
          : { ...run, status: 'failed', finished_at, error: fail('run_interrupted').toJSON() };
      const type = ended.status === 'cancelled' ? 'run.cancelled' : 'run.failed';
      const last = row.last + 1;
      await store.commit([
        {
          row: { ...row, status: ended.status, finished_at, last, snapshot: last },
          expect: row.last,
          lines: [encode({ type, run: ended })],
          ...(type === 'run.failed' && { ended: { tokens: 0, seconds: 0 } }),
        },
      ]);
    }
  }
}
