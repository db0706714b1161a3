import type { Agent, IfBusy, OnDisconnect } from '../../core/agent.ts';
import { encode, runInside } from '../../core/encode.ts';
import { fail, RivuletError } from '../../core/errors.ts';
import { checkContentTypes, receiveMessage, titleOf } from '../../core/messages.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import type { TraceHeaders } from '../../core/ports/traces.ts';
import { mayUseAgent, operator, ownerOf, type Principal, sessionIdOf, sessionKey } from '../../core/principal.ts';
import { encodeTargets, type PushTarget } from '../../core/push-targets.ts';
import type { AgentRequest, RunInput } from '../../core/request.ts';
import { isFinal } from '../../core/run-state.ts';
import type { RunCreateRequest } from '../../schema/api.ts';
import type { Message } from '../../schema/message.ts';
import type { Run } from '../../schema/run.ts';
import type { SessionInput } from '../../schema/session.ts';
import type { Place } from '../dispatch/dispatcher.ts';
import { Execution } from '../execution/execution.ts';
import { newIdBeside, newIdWhere, passId } from '../ids.ts';
import { changeOf, RunLog } from '../log/run-log.ts';
import { pages } from '../store/pages.ts';
import { isUnavailable, orUnavailable, retryOwed } from '../store/store-calls.ts';
import { cancelAll, cancelRun } from './cancel.ts';
import { type IdempotentRequest, idempotentRequest } from './idempotency.ts';
import type { RunServices } from './run-services.ts';
import type { Admission } from './session-queue.ts';

/** Attempts to store a run with a condition on its session, while other runs of the session are created. */
const maxAttempts = 10;

/** The options of a request for a run, from its headers. */
export interface RunOptions {
  readonly idempotency_key?: string;
  /**
   * The scope of the key. By default, requests that create runs share a scope, and replies to one run share another. A protocol with
   * one kind of request for both names a scope of its own, in which it also finds the run again.
   */
  readonly key_scope?: string;
  /**
   * Whether another request may take the key as soon as the run is final. Default: the key stands for its request for as long
   * as keys are kept.
   */
  readonly key_while_open?: boolean;
  /** Whether the client has events of what an earlier request with the key has begun: this one begins nothing. */
  readonly repeats?: boolean;
  readonly if_busy?: IfBusy;
  readonly on_disconnect?: OnDisconnect;
  /** The channel of a reply, which its run records. Default `api`. */
  readonly channel?: string;
  /** The caller, which owns the run. Default: the server itself. */
  readonly principal?: Principal;
  /** What the request says beside its messages. Default: nothing. */
  readonly request?: AgentRequest;
  /** What gets the run's changes of status, beside the webhook of the request. */
  readonly targets?: readonly PushTarget[];
  /** The trace context of the request. */
  readonly trace?: TraceHeaders;
  /**
   * Called before a run is stored, once its request is valid and its session admits it. Not called for a repeated request.
   * `cancels`: the request asks to cancel what it replaces, with its `if_busy` or its `on_disconnect`.
   */
  readonly prepare?: (cancels: boolean) => Promise<void>;
}

/** The engine's result for a request that creates or resumes a run. */
export interface AcceptedRun {
  readonly run_id: string;
  /** The Run as JSON, as it was when the request was accepted. */
  readonly run: string;
  /** Cursor: the id of the last event before those that the request causes. */
  readonly after: number;
}

/** A request for a run, after its validation. */
interface Plan {
  readonly agent: Agent;
  readonly input: Message[];
  readonly owner: string | null;
  /** The session's key. */
  readonly session_id: string;
  readonly if_busy: IfBusy;
  readonly now: string;
  readonly key: IdempotentRequest | undefined;
  readonly targets: string | null;
  /** The request's session, if it has one, in which URLs of this server's resources are paths. */
  readonly descriptor: SessionInput | undefined;
  readonly runOptions: RunOptions;
  /** What the run's span belongs to. */
  readonly trace: string | null;
}

/**
 * Creates a run and starts it, now or after the earlier runs of its session.
 * @throws RivuletError `run_unknown` where it repeats no request, `agent_unknown`, `validation_failed`, `content_type_refused`, `session_mismatch`,
 * `session_busy`, `queue_full`, `webhooks_off`, `idempotency_key_reused`, `too_busy`, `store_failed`, `store_unavailable`, `stopping`
 */
export async function createRun(
  services: RunServices,
  request: RunCreateRequest,
  runOptions: RunOptions,
): Promise<AcceptedRun> {
  const { idempotency_key, key_scope = 'runs', key_while_open, principal } = runOptions;
  const body = { ...request, ...runOptions.request };
  const key = idempotentRequest(key_scope, principal, idempotency_key, body, key_while_open);
  return services.idempotency.deduplicate(
    key,
    async ({ run_id, after }) => {
      await interruptAgain(services, run_id, request, runOptions);
      return { run_id, run: await services.lookup.json(run_id), after };
    },
    async (key) => {
      if (key !== undefined && runOptions.repeats) throw fail('run_unknown', `with the Idempotency-Key ${key.key}`);
      const plan = planOf(services, request, runOptions, key);
      const { session } = request;
      if (session === undefined) return admitRun(services, plan);
      const descriptor = await services.executions.sessions.receiveDescriptor(session, plan.session_id);
      return admitRun(services, { ...plan, descriptor });
    },
  );
}

/** Checks that a run may be created now. @throws RivuletError `too_busy`, `store_unavailable`, `stopping` */
export function checkRoom({ executions, active, commits, dispatcher }: RunServices): void {
  const { running } = executions.limits;
  // On a shared store, runs wait until a node has a free slot.
  if (!dispatcher.shared && running > 0 && active.working >= running) {
    throw fail('too_busy', `${running} runs are at work, which is the limit of this server`);
  }
  commits.checkAvailable();
}

function planOf(
  services: RunServices,
  request: RunCreateRequest,
  runOptions: RunOptions,
  key: IdempotentRequest | undefined,
): Plan {
  const { executions, webhooks } = services;
  checkRoom(services);
  if (request.webhook !== undefined) webhooks.check(request.webhook.url, 'webhook.url');
  for (const { url } of runOptions.targets ?? []) webhooks.check(url, 'url');
  const agent = executions.registry.get(request.agent_name);
  const now = executions.now();
  const input = request.input.map((message, index) => receiveMessage(message, `input[${index}]`, now));
  checkContentTypes(agent.manifest.name, agent.manifest.input_content_types ?? ['*/*'], input);
  const if_busy = ifBusyOf(runOptions, agent);
  const owner = ownerOf(runOptions.principal ?? operator);
  const session_id = sessionKey(owner, requestedSession(request) ?? newSessionId(services));
  const webhook = request.webhook ?? agent.options.webhook;
  const targets = encodeTargets([...(webhook === undefined ? [] : [webhook]), ...(runOptions.targets ?? [])]);
  const trace = executions.traces?.requested(runOptions.trace, null) ?? null;
  return { agent, input, owner, session_id, if_busy, now, key, targets, descriptor: undefined, runOptions, trace };
}

async function admitRun(services: RunServices, plan: Plan): Promise<AcceptedRun> {
  for (let attempt = 1; ; attempt += 1) {
    const admission = await services.queue.admit(plan.session_id, plan.if_busy);
    if (attempt === 1) await plan.runOptions.prepare?.(cancelsOthers(plan));
    else await passNewest(services, plan.session_id);
    try {
      return await storeRun(services, plan, admission);
    } catch (error) {
      const refused = error instanceof RivuletError && error.kind === 'conflict';
      if (!refused || admission.when === undefined || attempt === maxAttempts) throw error;
    }
  }
}

/** Makes the next id larger than that of the session's newest run, which may be of a node whose clock is ahead. */
async function passNewest({ store }: RunServices, session_id: string): Promise<void> {
  const [newest] = await store.runs({ session_id }, undefined, 1);
  if (newest !== undefined) passId(newest.run_id);
}

/** A run that is being written for the first time. */
interface WrittenRun {
  readonly row: RunRow;
  /** The Run as JSON. */
  readonly run: string;
  readonly durable: Promise<void>;
}

async function storeRun(services: RunServices, plan: Plan, admission: Admission): Promise<AcceptedRun> {
  const place = admission.queued ? undefined : services.dispatcher.reserve();
  let written: WrittenRun;
  try {
    written = writeRun(services, plan, admission, place !== undefined);
  } catch (error) {
    place?.drop();
    throw error;
  }
  const { row, run, durable } = written;
  await startWhenDurable(services, plan, row, durable, place);
  return { run_id: row.run_id, run, after: 0 };
}

/** Writes a new run. With a place, its execution is made as well. Otherwise the process that executes it reads it from the store. */
function writeRun(services: RunServices, plan: Plan, { queued, when }: Admission, hasPlace: boolean): WrittenRun {
  const { commits, executions, active, dispatcher } = services;
  const { agent, now, key, descriptor } = plan;
  const { request } = plan.runOptions;
  const input: RunInput = request === undefined ? plan.input : { messages: plan.input, request };
  const node = hasPlace ? dispatcher.node : undefined;
  const row = newRow(plan, queued, node);
  const log = new RunLog(commits.of(row.run_id), row, when === undefined ? { input } : { input, when });
  if (descriptor !== undefined) log.attach(executions.sessions.descriptorExtras(descriptor, row));
  if (key !== undefined) log.attach(services.idempotency.keyExtras(key, row.run_id, 0, now));
  if (node !== undefined) log.attach({ node });
  if (hasPlace) {
    const execution = new Execution(agent, newRun(row), input, log, executions);
    const run = runInside(execution.recordCreation());
    return { row, run, durable: active.add(execution) };
  }
  const created = newRun(row);
  const line = encode({ type: 'run.created', run: created });
  log.append(line, changeOf(created, now));
  return { row, run: runInside(line), durable: log.flushed() };
}

/** A write that was answered with `store_unavailable` may still be taken by the store, also after a crash of this process. */
const mayExist = 'the run may have been created, and a request with an Idempotency-Key finds it when it is repeated';

/**
 * Starts the run when it is durable, and waits for that for at most `requestTimeout`. After that the request fails, and
 * this process cancels the run if it becomes durable later. A run with an Idempotency-Key goes on, and a retry finds it.
 */
export async function startWhenDurable(
  services: RunServices,
  { key, if_busy }: Pick<Plan, 'key' | 'if_busy'>,
  row: RunRow,
  durable: Promise<void>,
  place?: Place,
): Promise<void> {
  const { queue, offers, executions, active } = services;
  const { requestTimeout } = executions.limits;
  const { run_id, session_id } = row;
  let withdrawn = false;
  const afterCommit = async (): Promise<void> => {
    if (!withdrawn && if_busy === 'interrupt') await cancelOlder(services, row);
    if (!withdrawn) await queue.add(session_id);
    // The request may have failed meanwhile.
    if (!withdrawn) return;
    await cancelRun(services, run_id);
    place?.drop();
  };
  const started = durable
    .then(() => {
      if (withdrawn || row.queued_at !== null) return retryOwed(() => !active.stopping, afterCommit);
      if (place === undefined) offers.offer(run_id);
      else place.begin(run_id);
    })
    .catch((error: unknown) => {
      place?.drop();
      // A run that the store refused is not started, and one that has ended is not cancelled.
      if (!(error instanceof RivuletError && ['conflict', 'key_in_use', 'already_final'].includes(error.kind)))
        executions.logFor(run_id).warn(`could not start: ${String(error)}`);
    });
  try {
    await orUnavailable(durable, requestTimeout);
    // A cancel waits for as long as `requestTimeout` for a node that does not answer.
    const most = if_busy === 'interrupt' ? 2 * requestTimeout : requestTimeout;
    if (row.queued_at !== null) await orUnavailable(started, most);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    withdrawn = key === undefined;
    throw Object.assign(fail('store_unavailable', mayExist), { cause: error.cause });
  }
}

/** Cancels the session's runs that were created before this one, and that its principal may see. */
async function cancelOlder(services: RunServices, { session_id, run_id, principal }: RunRow): Promise<void> {
  const by: Principal = principal === null ? operator : JSON.parse(principal);
  const older: RunRow[] = [];
  const read = async (after: RunRow | undefined, size: number) =>
    (await services.store.unfinished(session_id, after?.run_id ?? '', size)).filter((row) => row.run_id < run_id);
  for await (const rows of pages(100, read))
    older.push(...rows.filter(({ agent_name }) => mayUseAgent(by, agent_name)));
  await cancelAll(services, older);
}

/**
 * Does again what a request with `interrupt` does after its run is stored: its node may have died before the older runs
 * were cancelled.
 */
async function interruptAgain(
  services: RunServices,
  run_id: string,
  { agent_name }: RunCreateRequest,
  runOptions: RunOptions,
): Promise<void> {
  const { executions, store, queue } = services;
  if (ifBusyOf(runOptions, executions.registry.find(agent_name)) !== 'interrupt') return;
  const row = await store.run(run_id);
  if (row === undefined || row.queued_at === null || isFinal(row.status)) return;
  await cancelOlder(services, row);
  await queue.add(row.session_id);
}

const ifBusyOf = ({ if_busy }: RunOptions, agent: Agent | undefined): IfBusy =>
  if_busy ?? agent?.options.if_busy ?? 'parallel';

const onDisconnectOf = ({ on_disconnect }: RunOptions, options: Agent['options']): OnDisconnect =>
  on_disconnect ?? options.on_disconnect ?? 'continue';

const cancelsOthers = ({ if_busy, runOptions, agent: { options } }: Plan): boolean =>
  if_busy === 'interrupt' || onDisconnectOf(runOptions, options) !== 'continue';

/** The id of a new session: in a part of the store that answers, as far as is known. */
export const newSessionId = ({ store: { partitions } }: RunServices): string =>
  newIdWhere((id) => partitions?.answers(partitions.of(id)) !== false);

function requestedSession({ session_id, session }: RunCreateRequest): string | undefined {
  const [a, b] = [session_id?.toLowerCase(), session?.id.toLowerCase()];
  if (a !== undefined && b !== undefined && a !== b) throw fail('session_mismatch', a, b);
  return a ?? b;
}

/** The row of a new run, before its first event. With `node`, that node of a shared store executes it from the beginning. */
export const newRow = (
  {
    agent: { manifest, options },
    input,
    owner,
    session_id,
    now,
    targets,
    runOptions,
    trace,
  }: Omit<Plan, 'if_busy' | 'key' | 'descriptor'>,
  queued: boolean,
  node?: string,
): RunRow => ({
  run_id: newIdBeside(session_id),
  agent_name: manifest.name,
  session_id,
  owner,
  principal: storedPrincipal(runOptions.principal),
  targets,
  readers: null,
  trace,
  // As after any other start on a node: other nodes see that the agent may have begun.
  epoch: node === undefined ? 1 : 2,
  status: 'created',
  status_at: now,
  title: titleOf(input),
  created_at: now,
  finished_at: null,
  tier: options.durable === true ? 'durable' : 'pinned',
  attempts: 0,
  queued_at: queued ? now : null,
  due: null,
  rests_at: null,
  parked: null,
  on_disconnect: onDisconnectOf(runOptions, options),
  last: 0,
  snapshot: 0,
});

const storedPrincipal = (principal: Principal | undefined): string | null =>
  principal === undefined || principal.kind === 'anonymous' ? null : JSON.stringify(principal);

/** The Run of a new row. */
export const newRun = ({ run_id, agent_name, session_id, created_at }: RunRow): Run => ({
  run_id,
  agent_name,
  session_id: sessionIdOf(session_id),
  status: 'created',
  output: [],
  created_at,
});
