import { runEventOf, runInside } from '../../core/encode.ts';
import { cut } from '../../core/json.ts';
import type { NewDelivery } from '../../core/outbox.ts';
import { sessionIdOf } from '../../core/principal.ts';
import type { Store, Write } from '../../core/store.ts';
import type { Run } from '../../schema/run.ts';
import type { Webhook } from '../../schema/webhook.ts';
import { newId } from '../ids.ts';

const defaultEvents: readonly string[] = ['run.awaiting', 'run.completed', 'run.failed', 'run.cancelled'];
/** Characters of an error's message: receivers read the run for more. */
const maxMessage = 2_000;

/**
 * Commits that add webhooks to the outbox, in the same write as the change of status that they report: so a crash loses
 * none. Costs a run without a webhook one comparison for each write.
 */
export const withDeliveries = (commits: Pick<Store, 'commit'>, now: () => string): Pick<Store, 'commit'> => ({
  commit: (writes) =>
    commits.commit(
      writes.some(isReported)
        ? writes.map((write) => (isReported(write) ? { ...write, deliveries: deliveriesOf(write, now()) } : write))
        : writes,
    ),
});

/** Whether a write may change the status of a run that has a webhook. */
export const isReported = ({ row, grown, lines }: Write): boolean =>
  row.webhook !== null && grown !== true && lines.length > 0;

function deliveriesOf({ row, lines }: Write, now: string): NewDelivery[] {
  // Written by this or another node: see `RunRow.webhook`.
  const { url, events }: Webhook = JSON.parse(row.webhook ?? '{}');
  const wanted: readonly string[] = events ?? defaultEvents;
  const { run_id, agent_name, session_id } = row;
  return lines.flatMap((line) => {
    const status = runEventOf(line);
    const type = `run.${status}`;
    if (status === undefined || !wanted.includes(type)) return [];
    const data = { run_id, agent_name, session_id: sessionIdOf(session_id), status, ...errorIn(status, line) };
    return [{ delivery_id: newId(), url, type, body: JSON.stringify({ type, timestamp: now, data }), created_at: now }];
  });
}

function errorIn(status: string, line: string): Pick<Run, 'error'> {
  if (status !== 'failed') return {};
  const { error }: Run = JSON.parse(runInside(line));
  return error === undefined ? {} : { error: { code: error.code, message: cut(error.message, maxMessage) } };
}
