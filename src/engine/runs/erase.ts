import { setTimeout as pause } from 'node:timers/promises';
import { fail } from '../../core/errors.ts';
import { backoff } from '../../core/timing.ts';
import type { ErasedData } from '../../schema/api.ts';
import { cancelAll } from './cancel-all.ts';
import type { RunServices } from './run-services.ts';

/** Sessions, or runs, that one read asks the store for. */
const page = 100;
/** Milliseconds beside `cancelGrace` in which a cancelled run of any node has to end. */
const maxWait = 5_000;

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
      await endRuns(services, key);
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

/** Cancels the runs of a session, again where one was created or queued meanwhile, until all of them have ended. */
async function endRuns(services: RunServices, session_id: string): Promise<void> {
  const { store, executions } = services;
  const until = Date.now() + executions.limits.cancelGrace + maxWait;
  for (let attempt = 1; ; attempt += 1) {
    const open = await store.unfinished(session_id, '', page);
    const [first] = open;
    if (first === undefined) return;
    if (Date.now() > until) throw fail('not_final', first.run_id, first.status);
    await cancelAll(services, open);
    await pause(backoff(attempt, 5, 200));
  }
}
