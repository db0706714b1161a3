import { fail } from '../../core/errors.ts';
import type { Extras, RunRow, RunStore } from '../../core/ports/run-store.ts';
import { Delay } from '../../core/timing.ts';
import type { AwaitResume } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { newId } from '../ids.ts';
import {
  acceptedLine,
  type Forwarded,
  type ForwardedCancel,
  type ForwardedReply,
  forwardedIn,
  forwardedLine,
} from '../log/journal.ts';
import { retryUntilAvailable } from '../store/store-calls.ts';
import { asks } from './reply-target.ts';
import type { RunServices } from './run-services.ts';
import { isWritten } from './stored-write.ts';

/**
 * Stores a reply for the node that executes the run, and waits until the run goes on. A run that does not go on is offered. The
 * offer has no effect while the lease of its node lasts. After that, the node that takes the run over gives a durable run the
 * reply, and ends any other run. Resolves to false where another write came first, or the run rests.
 * @throws RivuletError `node_unresponsive`, and as `isWritten` and `whenMoved`
 */
export async function forwardReply(
  services: RunServices,
  row: RunRow,
  reply: AwaitResume,
  extras: Extras,
  trace: string | null,
): Promise<boolean> {
  const { store, executions, offers } = services;
  const until = performance.now() + executions.limits.requestTimeout;
  const { run_id, snapshot } = row;
  const entry: ForwardedReply = { forwarded: newId(), at: snapshot, reply, extras, ...(trace !== null && { trace }) };
  if (!(await appendForwarded(services, row, entry))) return false;
  try {
    if (!(await whenMoved(services, row, until))) throw fail('node_unresponsive', run_id);
  } catch (error) {
    offers.offer(run_id);
    throw error;
  }
  return (await store.journal(run_id)).includes(acceptedLine(entry.forwarded));
}

/**
 * Stores a cancel for the node that executes the run. Returns false where another write came first.
 * @throws RivuletError as `isWritten`
 */
export const forwardCancel = (
  services: RunServices,
  row: RunRow,
  question: string | undefined,
  reason: string | undefined,
): Promise<boolean> =>
  appendForwarded(services, row, {
    forwarded: newId(),
    cancel: true,
    ...(question !== undefined && { question }),
    ...(reason !== undefined && { reason }),
  });

/** Nothing else of the run changes: it belongs to the other node. */
async function appendForwarded(services: RunServices, row: RunRow, entry: Forwarded): Promise<boolean> {
  const journal = [forwardedLine(entry)];
  const [outcome] = await services.store.commit([{ row, expect: row.last, grown: true, lines: [], journal }]);
  return isWritten(services, row.run_id, outcome);
}

/**
 * Resolves to true when a run has another run event than in its row, is cancelled or rests; to false at `until`.
 * @throws RivuletError `run_unknown`, `log_removed`, `stopping`, `store_unavailable` where the store is away until then
 */
export async function whenMoved({ lookup }: RunServices, row: RunRow, until: number): Promise<boolean> {
  const { run_id, snapshot, status } = row;
  const delay = new Delay();
  let changed = true;
  const unsubscribe = lookup.onChange(run_id, () => {
    changed = true;
    delay.end();
  });
  try {
    for (let left = until - performance.now(); left > 0; left = until - performance.now()) {
      if (lookup.stopping) throw fail('stopping');
      if (!changed) await delay.wait(left);
      else {
        changed = false;
        const now = await retryUntilAvailable(left, () => lookup.row(run_id));
        if (now.snapshot > snapshot || now.status !== status || now.rests_at !== null) return true;
      }
    }
    return false;
  } finally {
    unsubscribe();
  }
}

/**
 * Does what other nodes have forwarded to a run of this node, in their order. A reply, or a cancel with a question, counts only
 * while the run asks its question. During a replay, only the store knows which question the run asks.
 */
export async function acceptForwarded(store: RunStore, execution: Execution): Promise<void> {
  const { log } = execution;
  for (const one of forwardedIn(log.run_id, await store.journal(log.run_id))) {
    // The run may have ended, or left this node, while the journal was read, or with the one before.
    if (log.outcome !== undefined) return;
    if ('cancel' in one) acceptCancel(execution, one);
    else acceptReply(execution, one);
  }
}

function acceptCancel(execution: Execution, { question, reason }: ForwardedCancel): void {
  if (question === undefined || (!execution.replaying && asks(execution.run, question))) execution.cancel(reason);
}

function acceptReply(execution: Execution, { forwarded, at, reply, extras, trace }: ForwardedReply): void {
  const { run, log, replaying } = execution;
  if (replaying || run.status !== 'awaiting' || log.row.snapshot !== at) return;
  execution.resume(reply, { ...extras, journal: [acceptedLine(forwarded)] }, trace);
}

/** Does, once its replay is over, what other nodes have forwarded to a run while no node had it. */
export async function acceptWhenLive(store: RunStore, execution: Execution): Promise<void> {
  await execution.whenLive();
  if (execution.log.outcome === undefined) await acceptForwarded(store, execution);
}
