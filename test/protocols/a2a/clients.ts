import type { Message, Part, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import { type Client, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

/** The bindings of the official client. */
export const bindings = ['JSONRPC', 'HTTP+JSON'] as const;
export type Binding = (typeof bindings)[number];

/** The official client of an agent, which has read the agent's card. */
export async function clientOf(url: string, binding: Binding, fetchImpl: typeof fetch = fetch): Promise<Client> {
  const transport =
    binding === 'JSONRPC' ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl });
  return new ClientFactory({ transports: [transport] }).createFromUrl(url);
}

export const text = (value: string): Part => ({ ...plain, content: { $case: 'text', value } });
export const data = (value: unknown): Part => ({ ...plain, content: { $case: 'data', value } });
const plain = { metadata: undefined, filename: '', mediaType: '' };

/** A message of the user to a client's agent. */
export const message = (parts: string | Part[], more: Partial<Message> = {}): SendMessageRequest => ({
  tenant: '',
  configuration: undefined,
  metadata: undefined,
  message: {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: 1,
    parts: typeof parts === 'string' ? [text(parts)] : parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
});

/** The text of a task's artifacts. */
export const textIn = ({ artifacts }: Pick<Task, 'artifacts'>): string =>
  artifacts
    .flatMap(({ parts }) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : '')))
    .join('');

/** What a client has after an update, as its users fold it. */
export function foldUpdate(task: Task | undefined, { payload }: StreamResponse): Task {
  if (payload?.$case === 'task') return payload.value;
  if (task === undefined || payload === undefined || payload.$case === 'message')
    throw new Error('expected a task first');
  if (payload.$case === 'statusUpdate') return { ...task, status: payload.value.status };
  const { artifact, append } = payload.value;
  if (artifact === undefined) throw new Error('expected an artifact');
  const known = task.artifacts.find(({ artifactId }) => artifactId === artifact.artifactId);
  if (known === undefined || !append) return { ...task, artifacts: [...task.artifacts, artifact] };
  const { metadata = known.metadata } = artifact;
  const longer = { ...known, parts: [...known.parts, ...artifact.parts], metadata };
  return { ...task, artifacts: task.artifacts.map((one) => (one === known ? longer : one)) };
}

/** The task at the end of a stream. */
export async function followed(stream: AsyncIterable<StreamResponse>): Promise<Task> {
  let task: Task | undefined;
  for await (const update of stream) task = foldUpdate(task, update);
  if (task === undefined) throw new Error('the stream has no task');
  return task;
}
