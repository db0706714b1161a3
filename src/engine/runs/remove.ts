import { setTimeout as pause } from 'node:timers/promises';
import { fail } from '../../core/errors.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import type { ErasedData } from '../../schema/api.ts';
import { pages } from '../store/pages.ts';
import type { IsVisible } from '../store/visible-runs.ts';
import { endAll } from './cancel.ts';
import type { RunServices } from './run-services.ts';

/** Sessions, or runs, that one read asks the store for. */
const page = 100;

/** Deletes a final run, its log and its messages. @throws RivuletError `run_unknown`, `log_removed`, `not_final` */
export async function removeRun({ store, lookup }: RunServices, run_id: string): Promise<void> {
  const row = await lookup.row(run_id);
  if (!(await store.remove(run_id))) throw fail('not_final', run_id, row.status);
}

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

/**
 * Deletes a session, by its key, and its runs, which have to be final. Of a session that has other runs as well, a caller
 * deletes the runs that it may see.
 * @throws RivuletError `session_unknown`, `not_final`
 */
export async function removeSession(
  { store, sessions }: RunServices,
  session_key: string,
  isVisible?: IsVisible,
): Promise<void> {
  await sessions.describe(session_key, isVisible);
  const { visible, hidden } = await sessions.runsOf(session_key, isVisible);
  if (hidden.size > 0) {
    const open = visible.find(({ status }) => !isFinal(status));
    if (open !== undefined) throw fail('not_final', open.run_id, open.status);
    for (const { run_id } of visible) await store.remove(run_id);
  } else if (!(await store.removeSession(session_key))) {
    const [open] = await store.unfinished(session_key, '', 1);
    throw fail('not_final', open?.run_id ?? 'of the session', open?.status ?? 'in-progress');
  }
}

/**
 * Erases all that an owner has: cancels its runs, waits until they have ended, and removes its sessions with their runs,
 * messages and states, then its idempotency keys and figures. What is created meanwhile is erased as well.
 * @throws RivuletError `not_final` where a run does not end in time: what is left can be erased with another call
 */
export async function eraseOwner(services: RunServices, owner: string): Promise<ErasedData> {
  const { store } = services;
  let runs = 0;
  let sessions = 0;
  for (let keys = await store.sessionsOf(owner, page); keys.length > 0; keys = await store.sessionsOf(owner, page)) {
    for (const key of keys) {
      const found = await countRuns(services, key);
      await endAll(services, () => store.unfinished(key, '', page));
      if (!(await store.removeSession(key))) continue;
      runs += found;
      sessions += 1;
    }
  }
  await store.removeOwner(owner);
  // The sweep clears what removed sessions have left, in small steps.
  while (await store.sweep({ keys: '' })) await pause(0);
  return { runs, sessions };
}

async function countRuns({ store }: RunServices, session_id: string): Promise<number> {
  let count = 0;
  const read = (before?: RunRow) => store.runs({ session_id }, before?.run_id, page);
  for await (const rows of pages(page, read)) count += rows.length;
  return count;
}
