import { setTimeout as pause } from 'node:timers/promises';
import { fail } from '../../core/errors.ts';
import type { RunRow } from '../../core/store.ts';
import { backoff } from '../../core/timing.ts';
import type { RunServices } from './run-services.ts';

/** Runs that are cancelled at once. */
const concurrentCancels = 100;
/** Milliseconds beside `cancelGrace` in which a cancelled run of any node has to end. */
const maxWait = 5_000;

/**
 * Cancels several runs of a session, oldest first in the list. The newest of those that are queued is the first, because
 * the end of an older run would start the next one of them. Then all others are cancelled at once: the node of each may
 * have died, and a cancel waits for it. Errors of runs that end meanwhile are ignored.
 */
export async function cancelAll({ cancel }: RunServices, rows: readonly RunRow[]): Promise<void> {
  const open = rows.filter(({ status }) => status !== 'cancelling').toReversed();
  const attempt = ({ run_id }: RunRow): Promise<unknown> => cancel(run_id).catch(() => undefined);
  for (const row of open) if (row.queued_at !== null) await attempt(row);
  const others = open.filter(({ queued_at }) => queued_at === null);
  for (let from = 0; from < others.length; from += concurrentCancels)
    await Promise.all(others.slice(from, from + concurrentCancels).map(attempt));
}

/**
 * Cancels the runs that `unfinished` returns, and those that it returns meanwhile, until it returns none.
 * @throws RivuletError `not_final` where a run does not end in time
 */
export async function endAll(services: RunServices, unfinished: () => Promise<readonly RunRow[]>): Promise<void> {
  const until = Date.now() + services.executions.limits.cancelGrace + maxWait;
  for (let attempt = 1; ; attempt += 1) {
    const open = await unfinished();
    const [first] = open;
    if (first === undefined) return;
    if (Date.now() > until) throw fail('not_final', first.run_id, first.status);
    await cancelAll(services, open);
    await pause(backoff(attempt, 5, 200));
  }
}
