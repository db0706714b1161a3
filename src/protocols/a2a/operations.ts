import type { TObject } from '@sinclair/typebox';
import type { FastifyReply } from 'fastify';
import { fail, RivuletError } from '../../core/errors.ts';
import { hasScope, type Scope } from '../../core/principal.ts';
import { compile } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import { nameRun, type Responder } from '../../http/requests/respond.ts';
import { lastEventIdIn } from '../../http/requests/run-requests.ts';
import { after, afterFrame, beginning, type Position } from '../../http/sse/projection.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import type { RunHeaders } from '../../schema/api.ts';
import { endOf, startOf } from '../turns.ts';
import { listTasks } from './list-tasks.ts';
import { a2aFrames, type FrameForm, taskFrame } from './projection.ts';
import { ownNames } from './proto-json.ts';
import {
  ConfigList,
  ConfigName,
  createPushConfig,
  deletePushConfig,
  type FindTask,
  getPushConfig,
  listPushConfigs,
  NewConfig,
} from './push-configs.ts';
import { CardRequest, ListTasksRequest, SendMessageRequest, TaskRequest } from './request.ts';
import { send } from './send.ts';
import { begunTask, findTask, readTask, runAt } from './stored-tasks.ts';
import { stateOf, taskOf } from './task-object.ts';

/** What the operations of a server share. */
export interface Service {
  readonly responder: Responder;
  /** The card of an agent as its caller sees it, or that of the server. @throws RivuletError `operation_unsupported` */
  extendedCard(call: Call): Promise<object>;
}

/** A request for an operation, in either binding. */
export interface Call {
  readonly own: Access;
  /** The agent of the address; undefined at the address of the server. */
  readonly agent: string | undefined;
  readonly params: unknown;
  readonly headers: RunHeaders & { readonly 'last-event-id'?: string | string[] | undefined };
  readonly reply: FastifyReply;
  /** Whether the client has named the extension of cursors. */
  readonly cursors: boolean;
  /** The id of a request of JSON-RPC, as JSON. */
  readonly id?: string;
}

/** Resolves to the answer; undefined where it is a stream. */
type Run = (service: Service, call: Call) => Promise<object | undefined>;

export interface Operation {
  readonly scope: Scope;
  readonly run: Run;
}

const sendRequest = compile(SendMessageRequest);
const taskRequest = compile(TaskRequest);
const listRequest = compile(ListTasksRequest);

const operation = (scope: Scope, schema: TObject, run: Run): Operation => ({
  scope,
  run: async (service, call) => {
    // JSON-RPC has one route for all operations.
    if (!hasScope(call.own.principal, scope)) throw fail('scope_missing', scope);
    return run(service, { ...call, params: ownNames(schema, call.params, call.reply) });
  },
});

/** An operation on the push notification configs of a task. */
const configs = (
  scope: Scope,
  schema: TObject,
  run: (own: Access, find: FindTask, params: unknown) => Promise<object>,
): Operation =>
  operation(scope, schema, async (_service, { own, agent, params }) => {
    if (!own.canPush) throw fail('webhooks_off');
    return run(own, (id) => findTask(own, agent, id), params);
  });

/** The operations by their names. The bindings say how each is asked for. */
export const operations = {
  SendMessage: operation('runs:write', SendMessageRequest, sendMessage),
  SendStreamingMessage: operation('runs:write', SendMessageRequest, sendStreamingMessage),
  GetTask: operation('runs:read', TaskRequest, async (_service, { own, agent, params }) => {
    const { id, historyLength } = taskRequest(params);
    return readTask(own, await findTask(own, agent, id), { historyLength });
  }),
  ListTasks: operation('runs:read', ListTasksRequest, async (_service, { own, agent, params }) => {
    const asked = listRequest(params ?? {});
    const named = agent ?? (asked.tenant || undefined);
    return listTasks(own, named && manifestOf(own, named).name, asked);
  }),
  CancelTask: operation('runs:write', TaskRequest, cancelTask),
  SubscribeToTask: operation('runs:read', TaskRequest, subscribeToTask),
  GetExtendedAgentCard: operation('agents:read', CardRequest, (service, call) => service.extendedCard(call)),
  CreateTaskPushNotificationConfig: configs('runs:write', NewConfig, createPushConfig),
  GetTaskPushNotificationConfig: configs('runs:read', ConfigName, getPushConfig),
  ListTaskPushNotificationConfigs: configs('runs:read', ConfigList, listPushConfigs),
  DeleteTaskPushNotificationConfig: configs('runs:write', ConfigName, deletePushConfig),
} satisfies Record<string, Operation>;
export type OperationName = keyof typeof operations;

export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name);

/** The manifest of an agent without figures. @throws RivuletError `agent_unknown` */
export function manifestOf(own: Access, name: string): AgentManifest {
  const manifest = own.tools().find((one) => one.name === name);
  if (manifest === undefined) throw fail('agent_unknown', name.slice(0, 100));
  return manifest;
}

/** The agent that a message is for: that of the address, or the one that the message names, or the only one. */
function agentOf({ own, agent }: Call, { tenant, message, metadata }: SendMessageRequest): string {
  if (agent !== undefined) return agent;
  const named = tenant || message.metadata?.agent || metadata?.agent;
  if (typeof named === 'string') return named;
  const names = own.tools().map(({ name }) => name);
  const [only, ...others] = names;
  if (only !== undefined && others.length === 0) return only;
  const shown = names.slice(0, 10).join(', ');
  throw fail('validation_failed', 'tenant', `name the agent here, or in message.metadata.agent, such as ${shown}`);
}

/** Waits until the task is settled, unless the client does not want to. */
async function sendMessage({ responder }: Service, call: Call): Promise<object> {
  const { own, reply } = call;
  const asked = sendRequest(call.params);
  responder.admit(own, 'sync');
  const { run_id, after: seen, begun } = await send(own, agentOf(call, asked), asked, call.headers);
  nameRun(reply, run_id);
  const { returnImmediately = false, historyLength } = asked.configuration ?? {};
  if (returnImmediately) return { task: await readTask(own, run_id, { historyLength }) };
  const run = await responder.collect(reply, own, run_id, { after: seen });
  const { task, input } = begun ?? (await begunTask(own, run_id));
  return { task: taskOf(task, JSON.parse(run), input, { historyLength }) };
}

/** A stream until the task is settled. It begins with the task: a new one, or as it was when it got the reply. */
async function sendStreamingMessage({ responder }: Service, call: Call): Promise<undefined> {
  const { own, reply } = call;
  const asked = sendRequest(call.params);
  responder.admit(own, 'stream');
  const turn = await send(own, agentOf(call, asked), asked, call.headers);
  const { run_id, after: seen } = turn;
  nameRun(reply, run_id);
  const extent = { historyLength: asked.configuration?.historyLength };
  const form = formOf(call);
  const { task, input } = turn.begun ?? (await begunTask(own, run_id));
  const before = seen === 0 ? undefined : await runAt(own, run_id, seen);
  const snapshot = before === undefined ? [] : [taskFrame(taskOf(task, before, input, extent), seen, form)];
  await responder.project(reply, own, run_id, {
    projection: a2aFrames(task, input, { ...form, ...extent }),
    from: startOf(turn),
    lead: () => snapshot,
  });
}

/** Waits until the task is final. One that is cancelled already is answered again. */
async function cancelTask({ responder }: Service, { own, agent, params, reply }: Call): Promise<object> {
  const { id } = taskRequest(params);
  const run_id = await findTask(own, agent, id);
  try {
    // Before the cancel, so that its event comes after.
    const { last } = await endOf(own, run_id);
    await own.cancel(run_id);
    await responder.collect(reply, own, run_id, { after: last, until: 'final' });
    return await readTask(own, run_id);
  } catch (error) {
    if (!(error instanceof RivuletError && error.kind === 'already_final')) throw error;
    const task = await readTask(own, run_id);
    if (task.status.state !== stateOf.cancelled) throw error;
    return task;
  }
}

/**
 * A stream until the task is final. It begins with the task as it is now; or, for a client that names the extension of
 * cursors and sends one, exactly after the frame that the client has.
 */
async function subscribeToTask({ responder }: Service, call: Call): Promise<undefined> {
  const { own, agent, params, reply, headers } = call;
  const { id, historyLength } = taskRequest(params);
  const run_id = await findTask(own, agent, id);
  responder.admit(own, 'stream');
  const { last, final } = await endOf(own, run_id);
  const cursor = call.cursors ? lastEventIdIn({ headers }) : undefined;
  if (cursor === undefined && final) {
    throw fail('operation_unsupported', `Task ${run_id} is final: read it with GetTask`);
  }
  const from = cursor === undefined ? after(last) : placeOf(cursor, final ? last : undefined);
  const form = formOf(call);
  const { task, input } = await begunTask(own, run_id);
  const now = cursor === undefined ? await runAt(own, run_id, last) : undefined;
  const snapshot = now === undefined ? [] : [taskFrame(taskOf(task, now, input, { historyLength }), last, form)];
  await responder.project(reply, own, run_id, {
    projection: a2aFrames(task, input, form),
    from,
    until: 'final',
    mode: 'events',
    lead: () => snapshot,
  });
}

/** A client that has the end gets the last frame again: a stream without any would look broken. */
function placeOf(cursor: string, end: number | undefined): Position {
  const place = afterFrame('Last-Event-ID', cursor);
  const hasEnd = place.event === end && place.frames === Number.POSITIVE_INFINITY;
  if (hasEnd) return { event: place.event, frames: -1 };
  return place.event === 0 ? beginning : place;
}

/** How the frames of a request differ from those of others. */
const formOf = ({ id, cursors }: Call): FrameForm => ({ id, ...(cursors && { cursors }) });
