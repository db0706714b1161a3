import { setTimeout as pause } from 'node:timers/promises';
import type { ErasedData } from '../../schema/api.ts';
import { endAll } from './cancel-all.ts';
import type { RunServices } from './run-services.ts';

/** Sessions, or runs, that one read asks the store for. */
const page = 100;

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
  for (let before: string | undefined; ; ) {
    const rows = await store.runs({ session_id }, before, page);
    count += rows.length;
    before = rows.at(-1)?.run_id;
    if (rows.length < page) return count;
  }
}
