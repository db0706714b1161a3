import { encode, toLine } from '../../core/encode.ts';
import { fail, orRefusal, RivuletError } from '../../core/errors.ts';
import { fold, resumedEvent } from '../../core/fold.ts';
import type { Extras, RunRow } from '../../core/ports/run-store.ts';
import type { TraceHeaders } from '../../core/ports/traces.ts';
import type { Principal } from '../../core/principal.ts';
import type { AwaitResume, AwaitResumeInput, Run } from '../../schema/run.ts';
import type { Execution } from '../execution/execution.ts';
import { receiveReply } from '../execution/reply-schema.ts';
import type { KnownRun } from '../log/checkpoint.ts';
import { replyLine } from '../log/journal.ts';
import { bareRun, foldStored, readLines } from '../log/stored-run.ts';
import { orUnavailable } from '../store/store-calls.ts';
import type { AcceptedRun, RunOptions } from './create.ts';
import { forwardReply } from './forward.ts';
import { type IdempotentRequest, idempotentRequest } from './idempotency.ts';
import { askedOf, isKnown, lateFor, openQuestionNumber, type ReplyTarget, replyTarget } from './reply-target.ts';
import type { RunServices } from './run-services.ts';
import { changeStored } from './stored-write.ts';

/**
 * Accepts the reply to the question of an awaiting run, in memory, on another node or in the store. A reply belongs to
 * the question whose id it names, or else to the one that is open when the request arrives.
 * @throws RivuletError `run_unknown`, `not_awaiting`, `await_type_mismatch`, `validation_failed`,
 * `question_mismatch`, `idempotency_key_reused`, `conflict`, `node_unresponsive`, `stopping`, `store_failed`,
 * `store_unavailable`
 */
export async function resumeRun(
  services: RunServices,
  run_id: string,
  input: AwaitResumeInput,
  { idempotency_key, key_scope, repeats = false, channel = 'api', principal, trace }: RunOptions,
): Promise<AcceptedRun> {
  const { active, lookup, idempotency } = services;
  // Before the first await: the run may ask its next question while this request is in progress.
  const target = replyTarget(input.id, active.local(run_id), () => lookup.row(run_id));
  const body = { input, ...(key_scope !== undefined && { run_id }) };
  const key = idempotentRequest(key_scope ?? `resume ${run_id}`, principal, idempotency_key, body);
  return idempotency.deduplicate(
    key,
    async ({ after }) => ({ run_id, run: await lookup.json(run_id), after }),
    async (key) => {
      if (key !== undefined && repeats) throw fail('run_unknown', `with the Idempotency-Key ${key.key}`);
      return resume(services, run_id, { input, target, key, channel, principal, trace });
    },
  );
}

interface ReplyRequest {
  readonly input: AwaitResumeInput;
  readonly target: ReplyTarget;
  readonly key: IdempotentRequest | undefined;
  readonly channel: string;
  readonly principal: Principal | undefined;
  readonly trace: TraceHeaders | undefined;
}

/** What the attempts to give a reply have found. */
interface Found {
  /** The row that the store had when the reply came, once it was needed. */
  readonly stored: RunRow | undefined;
  /** The run as it was read from the store last. */
  readonly known: KnownRun | undefined;
}

/**
 * Gives the reply while the run asks the question that was open when the reply arrived, within `requestTimeout`. An attempt
 * fails where another reply comes first. It also fails where a node takes the run over; the question is still open after that.
 */
async function resume(services: RunServices, run_id: string, request: ReplyRequest): Promise<AcceptedRun> {
  const { commits, executions } = services;
  commits.of(run_id).checkAvailable();
  const until = performance.now() + executions.limits.requestTimeout;
  for (let found: Found | undefined; ; ) {
    const outcome = await attemptReply(services, run_id, request, found);
    if ('run' in outcome) return outcome;
    if (performance.now() > until) throw fail('store_unavailable');
    found = outcome;
  }
}

async function attemptReply(
  services: RunServices,
  run_id: string,
  { input, target, key, channel, principal, trace }: ReplyRequest,
  found: Found | undefined,
): Promise<AcceptedRun | Found> {
  const { active, lookup, executions, idempotency } = services;
  let stored = found?.stored;
  let execution = await active.get(run_id);
  // After this loop, nothing is awaited before the reply is given: the execution may leave this process in any turn.
  for (;;) {
    if (execution !== undefined && !canTake(execution))
      await orUnavailable(execution.whenLive(), executions.limits.requestTimeout);
    else if (stored === undefined && target.stored !== undefined && !isKnown(target, execution))
      stored = await target.stored;
    else break;
    execution = await active.get(run_id);
  }
  // It was read for this attempt, unless a key was looked up meanwhile.
  const fresh = found === undefined && key === undefined ? stored : undefined;
  const row = execution?.log.row ?? fresh ?? (await lookup.row(run_id));
  const run =
    execution === undefined ? await storedRun(services, row, found?.known) : awaits(row) ? execution.run : bareRun(row);
  const now = executions.now();
  const question = stored === undefined || isKnown(target, execution) ? target.asked : openQuestionNumber(stored);
  const request = lateFor(run, now) ?? askedOf(run, target.id, question, openQuestionNumber(row));
  const reply =
    request instanceof RivuletError ? request : orRefusal(() => receiveReply(request, input, channel, now, principal));
  const next: Found = { stored, known: execution === undefined ? { run, last: row.last } : found?.known };
  if (reply instanceof RivuletError) {
    // Otherwise the execution is fenced: the events that it refused the reply for count for nothing.
    if (await isDurable(services, execution)) throw reply;
    return next;
  }
  const extras = idempotency.keyExtras(key, run_id, row.last, now);
  const accepted = await give(services, { execution, row, run, reply, extras, trace });
  if (accepted !== undefined) onAccepted(services, run, now);
  return accepted ?? next;
}

const awaits = ({ status }: RunRow): boolean => status === 'awaiting';

/** A run without an execution in this process, with what it asks. */
async function storedRun({ store, dispatcher }: RunServices, row: RunRow, known: KnownRun | undefined): Promise<Run> {
  // A run that is not durable awaits nothing, once its execution is lost and no other node can have it.
  const lost = row.tier !== 'durable' && !dispatcher.shared;
  return awaits(row) && !lost ? await foldStored(store, row, known) : bareRun(row);
}

/** Whether what a refusal rests on is durable: the last run event, and a status without an event. */
async function isDurable({ active }: RunServices, execution: Execution | undefined): Promise<boolean> {
  if (execution === undefined) return true;
  const { durable, row } = execution.log;
  return (row.snapshot <= durable && row.status !== 'cancelling') || active.whenDurable(execution);
}

function onAccepted({ events }: RunServices, { agent_name, await_request }: Run, now: string): void {
  const asked_at = await_request?.message.created_at;
  if (asked_at !== undefined) events.emit('reply', agent_name, (Date.parse(now) - Date.parse(asked_at)) / 1000);
}

/** During a replay the run awaits nothing, although its log may say so. A final run refuses the reply. */
const canTake = ({ log, replaying }: Execution): boolean => log.serves && (!replaying || log.outcome === 'final');

/** A reply that the question takes, and the run as it was judged for. */
interface JudgedReply {
  readonly execution: Execution | undefined;
  readonly row: RunRow;
  readonly run: Run;
  readonly reply: AwaitResume;
  readonly extras: Extras;
  readonly trace: TraceHeaders | undefined;
}

/** Resolves to undefined where another process has written to the run first. */
async function give(
  services: RunServices,
  { execution, row, run, reply, extras, trace }: JudgedReply,
): Promise<AcceptedRun | undefined> {
  const { traces } = services.executions;
  // On a shared store, a run that does not rest is executed by another node. On any other store, no process has the run.
  const isStored = row.tier === 'durable' && (row.rests_at !== null || !services.dispatcher.shared);
  if (execution === undefined && isStored) {
    const next = { ...row, trace: traces?.requested(trace, row.trace) ?? row.trace };
    return resumeStored(services, next, run, reply, extras);
  }
  // The execution knows its last span.
  const requested = traces?.requested(trace, null) ?? null;
  if (execution !== undefined) return resumeHere(services, execution, reply, extras, requested);
  if (!(await forwardReply(services, row, reply, extras, requested))) return undefined;
  return { run_id: run.run_id, run: JSON.stringify(fold(run, resumedEvent(run, reply))), after: row.last };
}

async function resumeHere(
  services: RunServices,
  execution: Execution,
  reply: AwaitResume,
  extras: Extras,
  requested: string | null,
): Promise<AcceptedRun | undefined> {
  const { log } = execution;
  const after = execution.resume(reply, extras, requested);
  const run = JSON.stringify(execution.run);
  try {
    await orUnavailable(log.flushed(), services.executions.limits.requestTimeout);
  } catch (error) {
    // The reply is durable all the same where only a later write was refused.
    if (log.durable <= after) {
      if (log.outcome !== 'fenced' || error !== log.failure) throw error;
      if (!(await hasReply(services, execution.run.run_id, after, reply))) return undefined;
    }
  }
  return { run_id: execution.run.run_id, run, after };
}

/** Whether the store has the reply after an event. It has, or never takes it, once the execution is fenced. */
async function hasReply(
  { store, lookup }: RunServices,
  run_id: string,
  after: number,
  reply: AwaitResume,
): Promise<boolean> {
  const row = await lookup.row(run_id);
  if (row.last <= after) return false;
  const [line = ''] = await readLines(store, { ...row, last: after + 1 }, after);
  return line.includes(`"await_resume":${toLine(reply)}`);
}

/** Resumes a durable run in the store. The node that executes it next replays it. */
async function resumeStored(
  services: RunServices,
  row: RunRow,
  run: Run,
  reply: AwaitResume,
  extras: Extras,
): Promise<AcceptedRun | undefined> {
  const { registry, now } = services.executions;
  // Before the write: a run whose agent is unknown has to go on awaiting.
  registry.get(row.agent_name);
  const { run_id, last } = row;
  const event = resumedEvent(run, reply);
  const change: Partial<RunRow> = {
    status: event.run.status,
    status_at: now(),
    due: null,
    rests_at: null,
    parked: null,
    // A reply is progress.
    attempts: 0,
    snapshot: last + 1,
  };
  const journal = [replyLine(last, reply)];
  if (!(await changeStored(services, row, change, { lines: [encode(event)], journal, ...extras }))) return undefined;
  return { run_id, run: JSON.stringify(fold(run, event)), after: last };
}
