import { setTimeout as sleep } from 'node:timers/promises';
import { type SendMessageRequest, type StreamResponse, TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';

/** The extension by which this server's streams go on exactly where they broke. */
const cursors = 'urn:rivulet:a2a:cursor:1';

/**
 * The updates of a task, from the message that begins or resumes it until the task is final or asks for input. A stream
 * that breaks goes on after the last update, with no missing or duplicate ones. `pause`: milliseconds before each try.
 */
export async function* followTask(
  client: Client,
  message: SendMessageRequest,
  pause = 1_000,
): AsyncGenerator<StreamResponse, void, undefined> {
  let seen: { id: string; cursor: string } | undefined;
  for (;;) {
    const serviceParameters = { 'A2A-Extensions': cursors, ...(seen && { 'Last-Event-ID': seen.cursor }) };
    // A message that comes again, by its id, has made the same task.
    const stream =
      seen === undefined
        ? client.sendMessageStream(message, { serviceParameters })
        : client.resubscribeTask({ id: seen.id, tenant: '' }, { serviceParameters });
    try {
      for await (const update of stream) {
        seen = positionOf(update) ?? seen;
        yield update;
        if (endsAt(update)) return;
      }
      return;
    } catch (error) {
      // The fetch of Node reports a broken connection so. Any other error is an answer of the server.
      if (!(error instanceof TypeError)) throw error;
      await sleep(pause);
    }
  }
}

/** The task of an update, and the cursor after it. */
function positionOf({ payload }: StreamResponse): { id: string; cursor: string } | undefined {
  if (payload === undefined || payload.$case === 'message') return undefined;
  const id = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
  const cursor: unknown = payload.value.metadata?.[cursors];
  return typeof cursor === 'string' ? { id, cursor } : undefined;
}

const ends = [
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_INPUT_REQUIRED,
];

/** Whether the task waits for nothing but the client. A stream that goes on with a subscription stays open there. */
const endsAt = ({ payload }: StreamResponse): boolean =>
  payload?.$case === 'statusUpdate' && ends.includes(payload.value.status?.state ?? TaskState.UNRECOGNIZED);
