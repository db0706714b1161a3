import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import type { Principal } from '../../core/principal.ts';
import { fold, resumedEvent } from '../../core/run-state.ts';
import type { Extras, RunRow, Write } from '../../core/store.ts';
import type { TraceHeaders } from '../../core/traces.ts';
import type { AwaitResume, AwaitResumeInput, Run } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { receiveReply } from '../execution/reply-schema.ts';
import { foldStored } from '../log/stored-run.ts';
import { orUnavailable } from '../store-access.ts';
import type { AcceptedRun, RunOptions } from './create.ts';
import { forwardReply } from './forward-reply.ts';
import { type IdempotentRequest, idempotentRequest } from './idempotency.ts';
import type { RunServices } from './run-services.ts';

/**
 * Accepts the reply to the question of an awaiting run, in memory, on another node or in the store. A reply belongs to
 * the question whose id it names, or else to the one that is open when the request arrives.
 * @throws RivuletError `run_unknown`, `not_awaiting`, `await_type_mismatch`, `validation_failed`,
 * `idempotency_key_reused`, `conflict`, `node_unresponsive`, `store_unavailable`
 */
export async function resumeRun(
  services: RunServices,
  run_id: string,
  input: AwaitResumeInput,
  { idempotency_key, key_scope, channel = 'api', principal, trace }: RunOptions,
): Promise<AcceptedRun> {
  const { active, idempotency } = services;
  // Before the first await: the run may ask its next question while this request is in progress.
  const local = active.local(run_id);
  const key =
    idempotency_key === undefined
      ? undefined
      : idempotentRequest(key_scope ?? `resume ${run_id}`, principal, idempotency_key, {
          input,
          ...(key_scope !== undefined && { run_id }),
        });
  // The lookup of a key takes time, in which a run of the store or of another node may ask its next question.
  const asked = input.id ?? (local === undefined ? key && storedQuestion(services, run_id) : openQuestion(local));
  return idempotency.deduplicate(
    key,
    async ({ after }) => ({ run_id, run: await active.json(run_id), after }),
    async () => resume(services, run_id, input, { asked: await asked, key, channel, principal, trace }),
  );
}

/** During a replay the execution may be at an earlier question. */
const openQuestion = ({ replaying, run }: Execution): string | undefined =>
  replaying ? undefined : run.await_request?.id;

/** The question of a run that this process does not execute. Where it cannot be read, the reply meets the same error. */
async function storedQuestion({ store, active }: RunServices, run_id: string): Promise<string | undefined> {
  try {
    const row = await active.row(run_id);
    return row.status === 'awaiting' ? (await foldStored(store, row)).await_request?.id : undefined;
  } catch {
    return undefined;
  }
}

interface Asked {
  /** The id of the question. */
  readonly asked: string | undefined;
  readonly key: IdempotentRequest | undefined;
  readonly channel: string;
  readonly principal: Principal | undefined;
  readonly trace: TraceHeaders | undefined;
}

async function resume(
  services: RunServices,
  run_id: string,
  input: AwaitResumeInput,
  { asked, key, channel, principal, trace }: Asked,
): Promise<AcceptedRun> {
  const { store, commits, active, executions, dispatcher, idempotency } = services;
  commits.checkAvailable();
  let execution = await active.get(run_id);
  // Checked here, where nothing is awaited before the use: a run that has left this process takes the reply in the store.
  while (execution !== undefined && !canTake(execution)) {
    await orUnavailable(execution.whenLive(), executions.limits.requestTimeout);
    execution = await active.get(run_id);
  }
  const row = execution?.log.row ?? (await active.row(run_id));
  // A run that is not durable awaits nothing, once its execution is lost and no other node can have it.
  const lost = execution === undefined && row.tier !== 'durable' && !dispatcher.shared;
  if (row.status !== 'awaiting' || lost) throw fail('not_awaiting', run_id, row.status);
  const run = execution?.run ?? (await foldStored(store, row));
  if (run.await_request === undefined) throw fail('not_awaiting', run_id, run.status);
  const { id } = run.await_request;
  if (asked !== undefined && id !== undefined && asked !== id) throw fail('question_mismatch', id, asked);
  const now = executions.now();
  const reply = receiveReply(run.await_request, input, channel, now, principal);
  const extras = idempotency.keyExtras(key, run_id, row.last, now);
  const { agent_name, await_request } = run;
  const accepted = await accept(services, { execution, row, run, reply, extras, trace });
  const asked_at = await_request.message.created_at;
  if (asked_at !== undefined) services.observers.onReply(agent_name, (Date.parse(now) - Date.parse(asked_at)) / 1000);
  return accepted;
}

/** During a replay the run awaits nothing, although its log may say so. A final run refuses the reply. */
const canTake = ({ log, replaying }: Execution): boolean =>
  log.readers !== undefined && (!replaying || log.outcome === 'final');

interface Accepted {
  readonly execution: Execution | undefined;
  readonly row: RunRow;
  readonly run: Run;
  readonly reply: AwaitResume;
  readonly extras: Extras;
  readonly trace: TraceHeaders | undefined;
}

function accept(services: RunServices, { execution, row, run, reply, extras, trace }: Accepted): Promise<AcceptedRun> {
  const { traces } = services.executions;
  if (execution === undefined && row.tier === 'durable') {
    const next = { ...row, trace: traces?.requested(trace, row.trace) ?? row.trace };
    return resumeStored(services, next, run, reply, extras);
  }
  // The execution knows its last span.
  const requested = traces?.requested(trace, null) ?? null;
  return execution === undefined
    ? forwardReply(services, row, run, reply, extras, requested)
    : resumeHere(services, execution, reply, extras, requested);
}

async function resumeHere(
  { commits }: RunServices,
  execution: Execution,
  reply: AwaitResume,
  extras: Extras,
  requested: string | null,
): Promise<AcceptedRun> {
  const after = execution.resume(reply, extras, requested);
  const run = JSON.stringify(execution.run);
  await commits.whenDurable(execution.log);
  return { run_id: execution.run.run_id, run, after };
}

/** Resumes a durable run in the store. The node that executes it next replays it; the node that had it is fenced. */
async function resumeStored(
  { commitOne, executions, active, offer }: RunServices,
  row: RunRow,
  run: Run,
  reply: AwaitResume,
  extras: Extras,
): Promise<AcceptedRun> {
  // Before the write: a run whose agent is unknown has to go on awaiting.
  executions.registry.get(row.agent_name);
  const { run_id, epoch, last } = row;
  const event = resumedEvent(run, reply);
  const next: RunRow = {
    ...row,
    status: event.run.status,
    status_at: executions.now(),
    due: null,
    // A reply is progress.
    attempts: 0,
    last: last + 1,
    snapshot: last + 1,
    epoch: epoch + 1,
  };
  const write: Write = {
    row: next,
    from: epoch,
    expect: last,
    lines: [encode(event)],
    journal: [JSON.stringify({ at: last, reply })],
    ...extras,
  };
  const outcome = await commitOne(write, () => {
    active.onWritten(next);
    offer(run_id);
  });
  if (outcome !== 'taken') throw fail('conflict', run_id);
  return { run_id, run: JSON.stringify(fold(run, event)), after: last };
}
