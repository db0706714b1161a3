import { Type } from '@sinclair/typebox';
import { toLine } from '../../core/encode.ts';
import { isFinal } from '../../core/run-state.ts';
import { compile, open } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import type { ChangeEvent } from '../../engine/changes/change-reader.ts';
import { isUuid } from '../../schema/formats.ts';
import type { Run } from '../../schema/run.ts';
import { serverInfoKey, subscriptionKey } from './client.ts';
import { type RpcId, resultOf } from './json-rpc.ts';
import { findRun, found, taskOf } from './tasks.ts';

/** Tasks of one subscription: the state of each is read when it changes. */
const maxTasks = 100;

const ListenParams = open({
  notifications: open({ taskIds: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: maxTasks })) }),
});
const checkListen = compile(ListenParams, 'params');

/** What a subscription asks for. @throws RivuletError `validation_failed` */
export function taskIdsIn(params: unknown): string[] {
  const { taskIds = [] } = checkListen(params).notifications;
  return [...new Set(taskIds.map((id) => id.toLowerCase()).filter(isUuid))];
}

interface Subscription {
  readonly own: Access;
  readonly id: RpcId;
  readonly taskIds: readonly string[];
  readonly serverInfo: object;
}

/**
 * The frames of a subscription: that it has begun, the state of each task and each change, and its end, once all tasks
 * are final or removed. Of what the caller does not have, it says nothing.
 */
export async function* taskFrames(
  { own, id, taskIds, serverInfo }: Subscription,
  feed: AsyncIterable<readonly ChangeEvent[]>,
): AsyncGenerator<readonly string[], void, undefined> {
  const _meta = { [subscriptionKey]: id };
  const frameOf = (method: string, params: object): string =>
    `data: ${toLine({ jsonrpc: '2.0', method, params: { ...params, _meta } })}\n\n`;
  /** Of each task that may still change, what its client has been told. */
  const told = new Map<string, string>();
  /** The frame of a task that has changed; undefined where nothing has changed. A run that is final or removed has no more. */
  const newsOf = async (taskId: string): Promise<string | undefined> => {
    const run = await findRun(own, taskId);
    const before = told.get(taskId);
    if (run === undefined || isFinal(run.status)) told.delete(taskId);
    else told.set(taskId, newsIn(run));
    return run === undefined || newsIn(run) === before ? undefined : frameOf('notifications/tasks', taskOf(own, run));
  };
  for (const taskId of taskIds) if ((await found(() => own.check(taskId))) !== undefined) told.set(taskId, '');
  yield [frameOf('notifications/subscriptions/acknowledged', { notifications: { taskIds: [...told.keys()] } })];
  // One after the other, each when the client has taken the one before: a run may be large.
  for (const taskId of [...told.keys()]) {
    const frame = await newsOf(taskId);
    if (frame !== undefined) yield [frame];
  }
  for await (const events of told.size === 0 ? [] : feed) {
    const isAnew = events.some(({ type }) => type === 'ready');
    const states = events.filter(({ type }) => type === 'run');
    const changed = isAnew ? [...told.keys()] : states.map(({ data }): string => JSON.parse(data).run.run_id);
    for (const taskId of changed) {
      const frame = told.has(taskId) ? await newsOf(taskId) : undefined;
      if (frame !== undefined) yield [frame];
    }
    if (told.size === 0) break;
  }
  if (told.size > 0) return;
  const result = { resultType: 'complete', _meta: { ..._meta, [serverInfoKey]: serverInfo } };
  yield [`data: ${toLine(resultOf(id, result))}\n\n`];
}

const newsIn = ({ status, await_request }: Run): string => `${status} ${await_request?.id ?? ''}`;
