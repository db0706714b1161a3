import { runInside } from '../../core/encode.ts';
import { cut } from '../../core/json.ts';
import type { NewDelivery } from '../../core/ports/outbox.ts';
import { rowAfter, type Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { sessionIdOf } from '../../core/principal.ts';
import { type PushForms, type PushTarget, type ReportedChange, targetsOf } from '../../core/push-targets.ts';
import { runEventOf } from '../../core/recognize.ts';
import type { Run } from '../../schema/run.ts';
import { newIdBeside } from '../ids.ts';

const defaultEvents: readonly string[] = ['run.awaiting', 'run.completed', 'run.failed', 'run.cancelled'];
/** Characters of an error's message: receivers read the run for more. */
const maxMessage = 2_000;

/**
 * Commits that add webhooks to the outbox, in the same write as the change of status that they report: so a crash loses
 * none. Costs a run without a target one comparison for each write.
 */
export const withDeliveries = (
  store: Pick<Store, 'commit' | 'partitions'>,
  now: () => string,
  forms: PushForms = {},
): Pick<Store, 'commit' | 'partitions'> => ({
  ...(store.partitions && { partitions: store.partitions }),
  commit: (writes) =>
    store.commit(
      writes.some(isReported)
        ? writes.map((write) =>
            isReported(write) ? { ...write, deliveries: deliveriesOf(write, now(), forms) } : write,
          )
        : writes,
    ),
});

/** Whether a write may change the status of a run that has a target. */
export const isReported = ({ row, grown, lines }: Write): boolean =>
  row.targets !== null && grown !== true && lines.length > 0;

function deliveriesOf(write: Write, now: string, forms: PushForms): NewDelivery[] {
  const row = rowAfter(write);
  const targets = targetsOf(row);
  return write.lines.flatMap((line) => {
    const status = runEventOf(line);
    if (status === undefined) return [];
    const type = `run.${status}`;
    const change: ReportedChange = { status, line, row, now };
    return targets.flatMap((target) => {
      const body = isWanted(target, type) ? bodyFor(target, change, forms) : undefined;
      if (body === undefined) return [];
      const { id = null, url } = target;
      return { delivery_id: newIdBeside(row.run_id), url, target: id, type, body, created_at: now };
    });
  });
}

const isWanted = ({ events, form }: PushTarget, type: string): boolean =>
  events === undefined ? form !== undefined || defaultEvents.includes(type) : events.includes(type);

/** Undefined for a form of another node, which this one does not serve. */
const bodyFor = (target: PushTarget, change: ReportedChange, forms: PushForms): string | undefined =>
  target.form === undefined ? bodyOf(change) : forms[target.form]?.bodyOf(change, target);

/** The body of a webhook. */
function bodyOf({ status, line, row: { run_id, agent_name, session_id }, now }: ReportedChange): string {
  const data = { run_id, agent_name, session_id: sessionIdOf(session_id), status, ...errorIn(status, line) };
  return JSON.stringify({ type: `run.${status}`, timestamp: now, data });
}

function errorIn(status: string, line: string): Pick<Run, 'error'> {
  if (status !== 'failed') return {};
  const { error }: Run = JSON.parse(runInside(line));
  return error === undefined ? {} : { error: { code: error.code, message: cut(error.message, maxMessage) } };
}
