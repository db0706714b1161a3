import { type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import { expect } from 'vitest';
import { type Binding, clientOf, data, foldUpdate, message } from '../a2a/clients.ts';
import { runsOf, type ServeChats, turns } from './agent.ts';
import { listed, type Seen } from './seen.ts';

const stateOf = (task: Task): string =>
  TaskState[task.status?.state ?? 0]?.replace('TASK_STATE_', '').toLowerCase().replace('_', '-') ?? 'none';

/** The last step that the state tells of. */
const stepIn = ({ status }: Task): string[] => {
  const [step] = Object.values(status?.message?.metadata ?? {});
  return step?.toolName === undefined
    ? []
    : [`step \`${step.toolName}\`${step.toolError === undefined ? '' : ' error'}`];
};

const shown = (tasks: readonly Task[]): string =>
  listed(
    tasks.flatMap((task) => [
      ...stepIn(task),
      stateOf(task),
      ...(JSON.stringify(task.artifacts).includes('"length"') ? ['cut off: length'] : []),
    ]),
  );

/** The official client, by one of its bindings. */
export async function a2a(serve: ServeChats, binding: Binding): Promise<Seen> {
  const chats = await serve();
  const client = await clientOf(`${chats.url}/a2a/chat/`, binding);
  let task: Task | undefined;
  const steps: string[] = [];
  const follow = async (stream: AsyncIterable<StreamResponse>): Promise<Task> => {
    for await (const update of stream) {
      task = foldUpdate(update.payload?.$case === 'task' ? undefined : task, update);
      steps.push(...stepIn(task));
    }
    if (task === undefined) throw new Error('expected a task');
    return task;
  };
  const say = (text: string): Promise<Task> => follow(client.sendMessageStream(message(text, { contextId: 'c' })));
  const first = say(turns[0]);
  await chats.working();
  await expect.poll(() => steps.length).toBe(1);
  const working = task === undefined ? 'nothing' : shown([task]);
  chats.release();
  const one = await first;
  const asked = await say(turns[1]);
  steps.length = 0;
  const reply = message([data(true)], { contextId: 'c', taskId: asked.id });
  const two = await follow(client.sendMessageStream(reply));
  const failing = [...new Set(steps)];
  const three = await say(turns[2]);
  const loaded: Task[] = [];
  for (const { id } of [one, two, three])
    loaded.push(await client.getTask({ tenant: '', id, historyLength: undefined }));

  const others = await serve();
  const other = await clientOf(`${others.url}/a2a/chat/`, binding);
  const ended: Task[] = [];
  for await (const update of other.sendMessageStream(message(turns[0], { contextId: 'c' }))) {
    if (update.payload?.$case !== 'statusUpdate' || update.payload.value.status?.message === undefined) continue;
    ended.push(await other.cancelTask({ tenant: '', id: update.payload.value.taskId, metadata: undefined }));
    break;
  }
  others.release();
  ended.push(await follow(other.sendMessageStream(message(turns[0], { contextId: 'c' }))));
  return {
    working,
    end: `${shown([one])}, ${stateOf(asked)}, ${listed(failing)}, ${shown([two, three])}`,
    reload: shown(loaded),
    again: [shown(ended), await runsOf(others)].join('; '),
  };
}
