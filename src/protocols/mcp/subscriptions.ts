import { Type } from '@sinclair/typebox';
import { toLine } from '../../core/encode.ts';
import { RivuletError } from '../../core/errors.ts';
import { isFinal } from '../../core/run-state.ts';
import { compile } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import type { ChangeEvent } from '../../engine/changes/change-reader.ts';
import { isUuid } from '../../schema/formats.ts';
import type { Run, RunDetails } from '../../schema/run.ts';
import { serverInfoKey, subscriptionKey } from './client.ts';
import { type RpcId, resultOf } from './json-rpc.ts';
import { taskOf } from './tasks.ts';

/** Tasks of one subscription: the state of each is read when it changes. */
const maxTasks = 100;

const open = { additionalProperties: true };
const ListenParams = Type.Object(
  {
    notifications: Type.Object(
      { taskIds: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: maxTasks })) },
      open,
    ),
  },
  open,
);
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
  const runs = new Map<string, Run>();
  for (const taskId of taskIds) {
    const run = await stateOf(own, taskId);
    if (run !== undefined) runs.set(taskId, run);
  }
  yield [
    frameOf('notifications/subscriptions/acknowledged', { notifications: { taskIds: [...runs.keys()] } }),
    ...[...runs.values()].map((run) => frameOf('notifications/tasks', taskOf(own, run))),
  ];
  /** Of a run that is final, or removed, there is nothing more to tell. */
  const follow = (taskId: string, run: Run | undefined): void =>
    void (run === undefined || isFinal(run.status) ? runs.delete(taskId) : runs.set(taskId, run));
  for (const [taskId, run] of [...runs]) follow(taskId, run);
  for await (const events of runs.size === 0 ? [] : feed) {
    const isAnew = events.some(({ type }) => type === 'ready');
    const states = events.filter(({ type }) => type === 'run');
    const changed = isAnew ? [...runs.keys()] : states.map(({ data }): string => JSON.parse(data).run.run_id);
    const frames: string[] = [];
    for (const taskId of changed) {
      const before = runs.get(taskId);
      if (before === undefined) continue;
      const run = await stateOf(own, taskId);
      follow(taskId, run);
      if (run !== undefined && isNews(before, run)) frames.push(frameOf('notifications/tasks', taskOf(own, run)));
    }
    if (frames.length > 0) yield frames;
    if (runs.size === 0) break;
  }
  if (runs.size > 0) return;
  const result = { resultType: 'complete', _meta: { ..._meta, [serverInfoKey]: serverInfo } };
  yield [`data: ${toLine(resultOf(id, result))}\n\n`];
}

const isNews = (before: Run, now: Run): boolean =>
  before.status !== now.status || before.await_request?.id !== now.await_request?.id;

/** A run as it is now; undefined for one that the caller does not have. */
async function stateOf(own: Access, run_id: string): Promise<Run | undefined> {
  try {
    const run: RunDetails = JSON.parse(await own.details(run_id));
    return run;
  } catch (error) {
    if (error instanceof RivuletError && error.code === 'not_found') return undefined;
    throw error;
  }
}
