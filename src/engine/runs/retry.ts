import { fail } from '../../core/errors.ts';
import type { RunRow, Write } from '../../core/ports/run-store.ts';
import { readRun } from '../log/stored-run.ts';
import { isWritten } from './forward.ts';
import type { RunServices } from './run-services.ts';

/**
 * Tries a parked run again; returns its Run as JSON. Its agent replays it. Where the agent still does not repeat what the
 * run has recorded, the run is parked anew.
 * @throws RivuletError `run_unknown`, `log_removed`, `not_parked`, `agent_unknown`, `conflict` where the run was changed
 * meanwhile, `store_failed`, `store_unavailable`
 */
export async function retryRun(services: RunServices, run_id: string): Promise<string> {
  const { commits, active, store, executions, offers } = services;
  commits.of(run_id).checkAvailable();
  const row = await active.row(run_id);
  if (row.parked === null) throw fail('not_parked', run_id, row.status);
  executions.registry.get(row.agent_name);
  const { run } = await readRun(store, row);
  if (!(await unpark(services, row))) throw fail('conflict', run_id);
  offers.offer(run_id);
  return JSON.stringify(run);
}

/**
 * Writes that a run is parked no more, so that some process has to execute it. Returns false if the run was written to
 * meanwhile. @throws RivuletError `store_failed`, `store_unavailable`
 */
export async function unpark(services: RunServices, row: RunRow): Promise<boolean> {
  const { commits, active } = services;
  const { run_id, epoch, last } = row;
  const next: RunRow = { ...row, epoch: epoch + 1, rests_at: null, parked: null };
  const write: Write = { row: next, from: epoch, expect: last, lines: [], node: null };
  const outcome = await commits.of(write.row.run_id).commitOne(write, () => active.onWritten(next));
  return isWritten(services, run_id, outcome);
}
