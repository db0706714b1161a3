import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import { fold } from '../../core/reduce.ts';
import { isFinal } from '../../core/status.ts';
import type { RunRow, Store } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { Run } from '../../schema/run.ts';
import { readPage } from './page-cache.ts';

/** The lines of a log after an event, up to the row's last. @throws RivuletError `log_removed` */
export async function linesAfter(store: Store, row: RunRow, after: number): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = after; cursor < row.last; ) {
    for (const { first, lines } of await readPage(store, row.run_id, cursor)) {
      found.push(...lines.slice(Math.max(0, cursor + 1 - first)));
      cursor = first + lines.length - 1;
    }
  }
  return found.slice(0, row.last - after);
}

/** The Run that a log folds into: from the last event that carries all of it, on to the end. */
export async function foldRow(store: Store, row: RunRow): Promise<Run> {
  const [first = '', ...rest] = await linesAfter(store, row, row.snapshot - 1);
  const start: Event = JSON.parse(first);
  if (!('run' in start)) throw new Error(`event ${row.snapshot} of run ${row.run_id} carries no Run`);
  const run = rest.reduce((folded, line) => fold(folded, JSON.parse(line)), start.run);
  // `cancelling` has no event of its own.
  return { ...run, status: row.status };
}

/** How often a run is tried to be taken out of the hands of a process that writes to it at the same time. */
const attempts = 100;

/**
 * Takes a run that is not over out of whatever hands it is in, to be cancelled: their writes are refused from now on.
 * @throws RivuletError `already_final`, `lost_race`, and what `find` throws
 */
export async function seize(store: Store, find: () => Promise<RunRow>): Promise<RunRow> {
  for (let attempt = 1; ; attempt += 1) {
    const row = await find();
    if (isFinal(row.status)) throw fail('already_final', row.run_id, row.status);
    const seized: RunRow = { ...row, epoch: row.epoch + 1, status: 'cancelling' };
    const [kept] = await store.commit([{ row: seized, from: row.epoch, expect: row.last, lines: [] }]);
    if (kept === 'taken') return seized;
    if (attempt === attempts) throw fail('lost_race', row.run_id);
  }
}

/** Ends a run that no process has in hand: failed with an error, or cancelled. Answers whether it still could. */
export async function endStored(store: Store, row: RunRow, finished_at: string, error?: ErrorBody): Promise<boolean> {
  const { await_request: _, ...run } = await foldRow(store, row);
  const ended: Run =
    error === undefined
      ? { ...run, status: 'cancelled', finished_at }
      : { ...run, status: 'failed', finished_at, error };
  const type = ended.status === 'cancelled' ? 'run.cancelled' : 'run.failed';
  const last = row.last + 1;
  const [kept] = await store.commit([
    {
      row: { ...row, status: ended.status, finished_at, last, snapshot: last, due: null, queued_at: null },
      expect: row.last,
      lines: [encode({ type, run: ended })],
      ...(error !== undefined && { ended: { tokens: 0, seconds: 0 } }),
    },
  ]);
  return kept === 'taken';
}
