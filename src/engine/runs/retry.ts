import { fail } from '../../core/errors.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { readRun } from '../log/stored-run.ts';
import type { RunServices } from './run-services.ts';
import { changeStored } from './stored-write.ts';

/**
 * Tries a parked run again; returns its Run as JSON. Its agent replays it. Where the agent still does not repeat what the
 * run has recorded, the run is parked anew.
 * @throws RivuletError `run_unknown`, `log_removed`, `not_parked`, `agent_unknown`, `conflict` where the run was changed
 * meanwhile, `store_failed`, `store_unavailable`
 */
export async function retryRun(services: RunServices, run_id: string): Promise<string> {
  const { commits, lookup, store, executions } = services;
  commits.of(run_id).checkAvailable();
  const row = await lookup.row(run_id);
  if (row.parked === null) throw fail('not_parked', run_id, row.status);
  executions.registry.get(row.agent_name);
  const { run } = await readRun(store, row);
  if (!(await unpark(services, row))) throw fail('conflict', run_id);
  return JSON.stringify(run);
}

/** A run is parked no more: some process has to execute it. Returns false, and throws, as `changeStored`. */
export const unpark = (services: RunServices, row: RunRow): Promise<boolean> =>
  changeStored(services, row, { rests_at: null, parked: null });
