import type { RunRow } from '../../core/store.ts';
import type { ErrorBody } from '../../schema/error.ts';
import { endingWrite, readRun } from '../log/stored-run.ts';
import type { RunServices } from './run-services.ts';

/** A run without an execution in this process has ended: wakes its readers, and starts the next run of its session. */
export function onStoredRunEnded({ active, queue }: RunServices, row: RunRow): void {
  active.onWritten(row);
  queue.onRunFinal(row.run_id);
}

/**
 * Ends a run without an execution in this process: failed with an error, or else cancelled. Does nothing if the run
 * was written to meanwhile.
 * @throws RivuletError `store_unavailable`
 */
export async function endStoredRun(services: RunServices, row: RunRow, error?: ErrorBody): Promise<void> {
  const end = endingWrite(row, await readRun(services.store, row), services.executions.now(), error);
  await services.commitOne(end, () => onStoredRunEnded(services, end.row));
}
