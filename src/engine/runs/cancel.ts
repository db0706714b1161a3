import { errorOf, fail, orRefusal, RivuletError } from '../../core/errors.ts';
import { type Extras, type RunRow, rowAfter, type Write } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import { retry } from '../../core/timing.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Run } from '../../schema/run.ts';
import type { KnownRun } from '../log/checkpoint.ts';
import { cancelLine, journalOf } from '../log/journal.ts';
import { bareRun, endingWrite, readRun } from '../log/stored-run.ts';
import { isUnavailable, retryOwed } from '../store/store-calls.ts';
import { forwardCancel, whenMoved } from './forward.ts';
import { askedOf } from './reply-target.ts';
import type { RunServices } from './run-services.ts';
import { changeStored } from './stored-write.ts';

/** Attempts to cancel a run in the store while another process writes to it. */
const maxAttempts = 100;
/** Runs that are cancelled at once. */
const concurrentCancels = 100;
/** Milliseconds beside `cancelGrace` in which a cancelled run of any node has to end. */
const maxWait = 5_000;

/**
 * Cancels a run; returns its Run as JSON, with the status `cancelling`. An execution gives its agent time to stop, in this
 * process or on another node. Any other run ends in the store at once. So does a parked run, whose agent cleans up nothing.
 * With the id of a question, the run is cancelled only while it awaits the reply to that question. The first cancel of a run
 * gives it its reason.
 * @throws RivuletError `run_unknown`, `log_removed`, `already_final`, `conflict`, `stopping`, `store_failed`,
 * `store_unavailable`; with a question also `not_awaiting`, `question_mismatch`
 */
export async function cancelRun(
  services: RunServices,
  run_id: string,
  question?: string,
  reason?: string,
): Promise<string> {
  const { commits, active, lookup } = services;
  const execution = await active.get(run_id);
  // During a replay, only the store knows what the run asks.
  const knows = question === undefined || execution?.replaying !== true;
  // It may have left this process just now.
  if (execution?.log.serves && knows) {
    commits.of(run_id).checkAvailable();
    const answer = orRefusal(() => {
      checkAsks(execution.run, question);
      execution.cancel(reason);
      return execution.replaying ? undefined : JSON.stringify(execution.run);
    });
    // Otherwise the log is fenced or failed, its events count for nothing, and the run is cancelled in the store.
    if (await active.whenDurable(execution)) {
      if (answer instanceof RivuletError) throw answer;
      return answer ?? lookup.json(run_id);
    }
  }
  return cancelStored(services, run_id, question, reason);
}

/** Cancels a run whose clients have left, when the store is available. Any other error means that the run has ended. */
export const cancelOwed = (services: RunServices, run_id: string): Promise<unknown> =>
  retryOwed(
    () => !services.active.stopping,
    () => cancelRun(services, run_id),
  ).catch(() => undefined);

/**
 * Cancels several runs of a session, which are listed oldest first. Queued runs are cancelled first, from the newest to the
 * oldest, because the end of a run would start the next queued one. Then all others are cancelled at once, because each
 * cancel may wait for a node that has died. Errors of runs that end meanwhile are ignored.
 * @throws RivuletError `store_unavailable`, after all others are cancelled, where the store failed for one of them
 */
export async function cancelAll(services: RunServices, rows: readonly RunRow[]): Promise<void> {
  const open = rows.filter(({ status }) => status !== 'cancelling').toReversed();
  let failure: unknown;
  const attempt = ({ run_id }: RunRow): Promise<unknown> =>
    cancelRun(services, run_id).catch((error: unknown) => {
      if (isUnavailable(error)) failure = error;
    });
  for (const row of open) if (row.queued_at !== null) await attempt(row);
  const others = open.filter(({ queued_at }) => queued_at === null);
  for (let from = 0; from < others.length; from += concurrentCancels)
    await Promise.all(others.slice(from, from + concurrentCancels).map(attempt));
  if (failure !== undefined) throw failure;
}

/**
 * Cancels the runs that `unfinished` returns, and those that it returns meanwhile, until it returns none.
 * @throws RivuletError `not_final` where a run does not end in time
 */
export async function endAll(services: RunServices, unfinished: () => Promise<readonly RunRow[]>): Promise<void> {
  const until = Date.now() + services.executions.limits.cancelGrace + maxWait;
  const isOpen = (error: unknown): boolean => error instanceof RivuletError && error.kind === 'not_final';
  let isLate = false;
  const cancelOpen = async (): Promise<void> => {
    const open = await unfinished();
    const [first] = open;
    if (first === undefined) return;
    isLate = Date.now() > until;
    // Runs that the store kept from being cancelled are found again.
    if (!isLate) await cancelAll(services, open).catch(() => undefined);
    throw fail('not_final', first.run_id, first.status);
  };
  await retry(cancelOpen, { again: (error) => isOpen(error) && !isLate, first: 5, most: 200 });
}

/**
 * Cancels a run through the store. A node that executes the run is asked to cancel it. Where that node does not answer, a
 * write fences it, and the run ends when the lease of that node has ended. Until then, the agent may work.
 */
async function cancelStored(
  services: RunServices,
  run_id: string,
  question: string | undefined,
  reason: string | undefined,
): Promise<string> {
  const { store, lookup, dispatcher, executions } = services;
  const { requestTimeout, cancelGrace } = executions.limits;
  const until = performance.now() + Math.min(requestTimeout, cancelGrace > 0 ? cancelGrace : Infinity);
  let known: KnownRun | undefined;
  let forwarded = false;
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const row = await lookup.row(run_id);
    const isCancelled = row.status === 'cancelling' ? dispatcher.shared : row.status === 'cancelled' && forwarded;
    if (isFinal(row.status) && !isCancelled) throw fail('already_final', run_id, row.status);
    known = await readRun(store, row, known);
    if (isCancelled) return cancellingOf(known.run);
    checkAsks(known.run, question);
    const run = withReason(known.run, reason);
    const begun = isBegun(row);
    if (row.parked !== null) {
      // Its agent cannot be brought to where the run is, so it cannot clean up.
      if (await commitEnd(services, row, run)) return cancellingOf(run);
    } else if (begun && row.tier === 'durable' && (!dispatcher.shared || row.rests_at !== null)) {
      // No node has it. It is re-entered, so that its agent cleans up.
      if (await commitCancelling(services, row, reason)) return cancellingOf(run);
    } else if (!dispatcher.shared || !begun) {
      if (await commitEnd(services, row, run)) return cancellingOf(run);
    } else if (!forwarded) {
      forwarded = await forwardCancel(services, row, question, reason);
    } else if (performance.now() < until) {
      await whenMoved(services, row, until);
    } else if (await commitCancelling(services, row, reason)) {
      return cancellingOf(run);
    }
  }
  throw fail('conflict', run_id);
}

/** Whether the agent of a run may have begun: a node raises the epoch before, and writes `in-progress` a moment later. */
const isBegun = ({ status, queued_at, epoch }: RunRow): boolean =>
  queued_at === null && (status !== 'created' || epoch > 1);

const withReason = (run: Run, cancel_reason: string | undefined): Run =>
  cancel_reason === undefined ? run : { ...run, cancel_reason };

function cancellingOf(run: Run): string {
  const { await_request: _, finished_at: __, ...rest } = run;
  return JSON.stringify({ ...rest, status: 'cancelling' });
}

/**
 * Writes that a run is cancelled, which fences its node. The run is offered: the node that gets it ends it, or lets its
 * agent clean up; see `Executor`. Returns false if the run was written to meanwhile.
 * @throws RivuletError `store_failed`, `store_unavailable`
 */
function commitCancelling(services: RunServices, row: RunRow, reason: string | undefined): Promise<boolean> {
  const change = { status: 'cancelling', status_at: services.executions.now(), due: null, rests_at: null } as const;
  const isJournaled = row.tier === 'durable' || reason !== undefined;
  return changeStored(services, row, change, isJournaled ? { journal: [cancelLine(row.last, reason)] } : {});
}

/** @throws RivuletError `not_awaiting`, `question_mismatch` where a run that is not cancelled awaits no reply to this question */
function checkAsks(run: Run, question: string | undefined): void {
  if (question === undefined || run.status === 'cancelling') return;
  const asked = askedOf(run, question);
  if (asked instanceof RivuletError) throw asked;
}

/** A run without an execution in this process has ended: wakes its readers, and starts the next run of its session. */
function onStoredRunEnded({ active, queue, events }: RunServices, row: RunRow, error?: ErrorBody): void {
  active.onWritten(row);
  queue.onRunFinal(row.run_id);
  events.emit('runEnded', { row, ...(row.status === 'failed' && error !== undefined && { error }) });
}

/**
 * Ends a run without an execution in this process: failed with an error, or else cancelled. Does nothing if the run
 * was written to meanwhile.
 * @throws RivuletError `store_failed`, `store_unavailable`
 */
export async function endStoredRun(services: RunServices, row: RunRow, error?: ErrorBody): Promise<void> {
  const { store } = services;
  const { run } = await readRun(store, row);
  const journal = row.status === 'cancelling' ? await journalOf(store, row.run_id) : [];
  const cancelled = journal.find((entry) => 'cancelled' in entry);
  await commitEnd(services, row, withReason(run, cancelled?.reason), error);
}

/** What the end of a run adds to the history of its session, as an execution does. */
async function historyExtras({ store, executions }: RunServices, { row }: Write, run: Run): Promise<Extras> {
  const { run_id, session_id, status } = row;
  const input = (await store.input(run_id)) ?? [];
  return executions.sessions.turnExtras({ session_id, run_id }, input, { ...run, status }, executions.now());
}

/**
 * Writes the end of a run. The final event and the session's history repeat the output, the questions and the replies. Where
 * the store can never take that write, the run ends without them: the events before have them. Where the store does not take
 * the webhooks of the end either, the run loses its targets. Returns false if the run was written to meanwhile.
 * @throws RivuletError `store_failed` where the store takes no end, `store_unavailable`
 */
async function commitEnd(services: RunServices, row: RunRow, run: Run, error?: ErrorBody): Promise<boolean> {
  const { commits, executions, store } = services;
  let cause: unknown;
  const bare = withReason(bareRun(row), run.cancel_reason);
  const untargeted = { ...row, targets: null };
  const attempts: [RunRow, Run][] = [
    [row, run],
    [row, bare],
  ];
  if (row.targets !== null) attempts.push([untargeted, bare]);
  for (const [from, said] of attempts) {
    if (from === untargeted && !(await store.compareAndSet(row.run_id, 'targets', row.targets, null))) return false;
    const written = endingWrite(from, said, executions.now(), error);
    const end = said === bare ? written : { ...written, ...(await historyExtras(services, written, said)) };
    const outcome = await commits
      .of(end.row.run_id)
      .commitOne(end, () => onStoredRunEnded(services, rowAfter(end), error));
    if (typeof outcome !== 'object') return outcome === 'taken';
    cause = outcome.rejected;
  }
  executions.logFor(row.run_id).error(`the store does not take its end: ${errorOf(cause).message}`);
  throw fail('store_failed');
}
