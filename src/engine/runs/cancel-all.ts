import type { RunRow } from '../../core/store.ts';
import type { RunServices } from './run-services.ts';

/** Runs that are cancelled at once. */
const concurrentCancels = 100;

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
