import type { RunRow } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import { endingWrite, readRun } from '../log/stored-run.ts';
import type { RunServices } from './run-services.ts';

/** What follows from the end of a run that no execution here has: its readers are woken, its session goes on. */
export function onStoredRunEnded({ active, queue }: RunServices, row: RunRow): void {
  active.onWritten(row);
  queue.onRunFinal(row.run_id);
}

/**
 * Ends a run that no execution here has: failed with an error, or else cancelled. Does nothing where it has moved.
 * @throws RivuletError `store_unavailable`
 */
export async function endStoredRun(services: RunServices, row: RunRow, error?: ErrorBody): Promise<void> {
  const end = endingWrite(row, await readRun(services.store, row), services.executions.now(), error);
  await services.commitOne(end, () => onStoredRunEnded(services, end.row));
}
