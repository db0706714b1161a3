import { fail } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import { endingWrite, readRun } from '../log/stored-run.ts';
import { onStoredRunEnded } from './end-stored.ts';
import type { RunServices } from './run-services.ts';

/** How often a run is tried to be ended while its execution elsewhere writes to it. */
const attempts = 100;

/**
 * Cancels a run; answers its Run, `cancelling`, as JSON. An execution in this process gives its agent time to stop. Any
 * other run is ended in the store, in one write that raises its epoch: an execution elsewhere can write no more.
 * @throws RivuletError `run_unknown`, `log_removed`, `already_final`, `conflict`, `store_unavailable`
 */
export async function cancelRun(services: RunServices, run_id: string): Promise<string> {
  const { store, commits, commitOne, active, executions } = services;
  const execution = await active.get(run_id);
  if (execution !== undefined) {
    commits.checkAvailable();
    execution.cancel();
    const run = JSON.stringify(execution.run);
    // Otherwise the run has moved, and goes on elsewhere.
    if (await active.whenDurable(execution)) return run;
  }
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const row = await active.row(run_id);
    if (isFinal(row.status)) throw fail('already_final', run_id, row.status);
    const run = await readRun(store, row);
    const end = endingWrite(row, run, executions.now());
    const outcome = await commitOne(end, () => onStoredRunEnded(services, end.row));
    if (outcome !== 'taken') continue;
    const { await_request: _, ...rest } = run;
    return JSON.stringify({ ...rest, status: 'cancelling' });
  }
  throw fail('conflict', run_id);
}
