import { Type } from '@sinclair/typebox';
import { RivuletError } from '../../core/errors.ts';
import { cut } from '../../core/json.ts';
import { compile, open } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import { isUuid } from '../../schema/formats.ts';
import type { Run, RunStatus } from '../../schema/run.ts';
import { cancelOpen } from '../replies.ts';
import { ElicitResult, elicitOf, replyOf } from './elicitation.ts';
import { RpcError } from './json-rpc.ts';
import { notAnswered, questionId } from './questions.ts';
import { endedResult } from './tool-result.ts';
import { outputSchemaOf } from './tools.ts';

// Runs that take long, as the extension `tasks` has them: a task is a run, and has its id.

/** Milliseconds after which a client may ask again. */
const pollIntervalMs = 1_000;

const statuses: Readonly<Record<RunStatus, string>> = {
  created: 'working',
  'in-progress': 'working',
  cancelling: 'working',
  awaiting: 'input_required',
  completed: 'completed',
  // The agent's failure is a result: `failed` is for calls that are refused.
  failed: 'completed',
  cancelled: 'cancelled',
};

/** A final run is kept for this time; one that is not final is kept anyway. */
const ttlOf = (own: Access, run: Run): number | null => {
  const time = own.keptFor(run.agent_name);
  return Number.isSafeInteger(time) && time > 0 ? time : null;
};

const base = (own: Access, run: Run): object => ({
  taskId: run.run_id,
  status: statuses[run.status],
  createdAt: run.created_at,
  lastUpdatedAt: run.finished_at ?? run.await_request?.message.created_at ?? run.created_at,
  ttlMs: ttlOf(own, run),
  pollIntervalMs,
});

/** What a call of a long run is answered with. */
export const taskBegun = (own: Access, run: string): object => ({ resultType: 'task', ...base(own, JSON.parse(run)) });

/** A run with all that its status says more: what it asks, or its result. */
export function taskOf(own: Access, run: Run): object {
  const { status, await_request } = run;
  if (status === 'completed' || status === 'failed') {
    const result = endedResult(run, outputSchemaOf(own, run.agent_name));
    return { ...base(own, run), result: { resultType: 'complete', ...result } };
  }
  if (status !== 'awaiting' || await_request === undefined) return base(own, run);
  return { ...base(own, run), inputRequests: { [questionId(await_request)]: elicitOf(await_request) } };
}

const TaskParams = open({ taskId: Type.String() });
const UpdateParams = open({ taskId: Type.String(), inputResponses: Type.Record(Type.String(), Type.Unknown()) });
const checkTask = compile(TaskParams, 'params');
const checkUpdate = compile(UpdateParams, 'params');
const checkReply = compile(ElicitResult, 'params.inputResponses');

/** What a read finds; undefined for a run that the caller does not have. */
export async function found<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof RivuletError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** A run as it is now; undefined for one that the caller does not have. */
export const findRun = (own: Access, run_id: string): Promise<Run | undefined> =>
  found(async () => JSON.parse(await own.details(run_id)));

/** @throws RpcError for a run that the caller does not have */
async function runOf(own: Access, taskId: string): Promise<Run> {
  const run = isUuid(taskId) ? await findRun(own, taskId.toLowerCase()) : undefined;
  if (run !== undefined) return run;
  throw new RpcError('invalidParams', `params.taskId: there is no task ${cut(taskId, 100)}`);
}

export async function getTask(own: Access, params: unknown): Promise<object> {
  return taskOf(own, await runOf(own, checkTask(params).taskId));
}

/** Replies to what a run asks. Replies to other questions have come already, and are ignored. */
export async function updateTask(own: Access, params: unknown): Promise<object> {
  const { taskId, inputResponses } = checkUpdate(params);
  const { run_id, status, await_request } = await runOf(own, taskId);
  if (status !== 'awaiting' || await_request === undefined) return {};
  const id = questionId(await_request);
  const input = inputResponses[id];
  if (input === undefined) return {};
  const message = replyOf(await_request, checkReply(input));
  if (message === undefined) await cancelOpen(own, run_id, id, notAnswered);
  else {
    await own.resume(run_id, { id, message }, { channel: 'mcp' });
  }
  return {};
}

export async function cancelTask(own: Access, params: unknown): Promise<object> {
  const { run_id } = await runOf(own, checkTask(params).taskId);
  await cancelOpen(own, run_id);
  return {};
}
