import type { RunRow } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import { endOf, readRun } from '../log/stored-run.ts';
import type { RunServices } from './run-services.ts';

/** What follows from the end of a run that no execution here has: its readers are woken, its session goes on. */
export function ended({ active, queue }: RunServices, row: RunRow): void {
  active.moved(row);
  queue.ended(row.run_id);
}

/**
 * Ends a run that no execution here has: failed with an error, or else cancelled. Does nothing where it has moved.
 * @throws RivuletError `store_unavailable`
 */
export async function endStored(services: RunServices, row: RunRow, error?: ErrorBody): Promise<void> {
  const end = endOf(row, await readRun(services.store, row), services.executions.now(), error);
  await services.commitOne(end, () => ended(services, end.row));
}
