import { fail } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunRow } from '../../core/store.ts';
import { endAll } from './cancel-all.ts';
import type { RunServices } from './run-services.ts';

/**
 * Removes runs that a person has cut off from the end of a conversation. A run that is not final is cancelled first, where its
 * cancel was asked for: by this request (`cancels`), by a request before, or by the policy of the run for a client that
 * leaves.
 * @throws RivuletError `not_final`, before anything is cancelled or removed; also where a cancelled run does not end in time
 */
export async function dropRuns(services: RunServices, run_ids: readonly string[], cancels: boolean): Promise<void> {
  const { store } = services;
  const unfinished = async (): Promise<RunRow[]> => {
    const open: RunRow[] = [];
    for (const run_id of run_ids) {
      const row = await store.run(run_id);
      if (row !== undefined && !isFinal(row.status)) open.push(row);
    }
    return open;
  };
  const kept = (await unfinished()).find(
    ({ status, on_disconnect }) => !cancels && status !== 'cancelling' && on_disconnect === 'continue',
  );
  if (kept !== undefined) throw fail('not_final', kept.run_id, kept.status);
  await endAll(services, unfinished);
  for (const run_id of run_ids) await store.remove(run_id);
}
