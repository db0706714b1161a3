import { isFinal } from '../../core/run-state.ts';
import { extension } from '../../schema/a2a-extension.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { FinishReason, Message, MessagePart } from '../../schema/message.ts';
import type { AwaitRequest, Run, RunStatus } from '../../schema/run.ts';
import { type TaskMessage, type TaskPart, taskPartOf } from './task-parts.ts';

// A run as a task: all of it, as clients read it at once. The projection says the same event by event.

/** What tasks and frames say that the log does not: the client's own name of the conversation, and the messages to it. */
export interface Conversation {
  readonly taskId: string;
  readonly contextId: string;
}

export interface TaskStatus {
  readonly state: string;
  readonly timestamp: string;
  readonly message?: TaskMessage;
}

interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly parts: readonly TaskPart[];
  readonly metadata?: object;
}

/** What the metadata of an artifact says of its message. Artifacts after an interrupted one say it anew. */
export function markOf(reason: FinishReason | undefined): Pick<Artifact, 'metadata'> {
  if (reason === undefined) return {};
  return { metadata: reason === 'interrupted' ? { [extension.interrupted]: true } : { [extension.cutOff]: reason } };
}

export interface Task extends Record<string, unknown> {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly TaskMessage[];
}

/** The states of a task that runs have. */
export const stateOf: Readonly<Record<RunStatus, string>> = {
  created: 'TASK_STATE_SUBMITTED',
  'in-progress': 'TASK_STATE_WORKING',
  awaiting: 'TASK_STATE_INPUT_REQUIRED',
  // Until it is cancelled, its agent may be at work.
  cancelling: 'TASK_STATE_WORKING',
  cancelled: 'TASK_STATE_CANCELED',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
};

/** The k-th artifact of a task, from 1: each reader counts the same ones. It is unique in its task, and so short in each frame. */
export const artifactId = (k: number): string => `a${k}`;

/** Whether a part is a result. A step of the agent is shown while it happens. */
const isResult = ({ metadata }: MessagePart): boolean => metadata?.kind !== 'trajectory';

/** Whether a part is an artifact of its own. */
export const isNamed = ({ name }: MessagePart): boolean => name !== undefined && name !== '';

/** The status that a run has after its last change of status. */
export function statusOf(task: Conversation, run: Run): TaskStatus {
  const { status, await_request, error } = run;
  const message =
    status === 'awaiting' ? await_request && questionOf(task, await_request) : error && errorOf(task, error);
  return { state: stateOf[status], timestamp: timeOf(run), message };
}

/** When a run came to its status. The log has no time of the moment at which an agent begins. */
function timeOf({ status, created_at, finished_at, await_request, await_resume, questions }: Run): string {
  if (isFinal(status)) return finished_at ?? created_at;
  if (status === 'awaiting') return await_request?.message.created_at ?? created_at;
  return await_resume?.received_at ?? questions?.at(-1)?.reply?.received_at ?? created_at;
}

function questionOf(task: Conversation, { message, id = '', schema, expires_at, tool }: AwaitRequest): TaskMessage {
  const asked = {
    ...(schema !== undefined && { schema }),
    ...(expires_at !== undefined && { expiresAt: expires_at }),
    ...(tool !== undefined && { tool }),
  };
  const metadata = Object.keys(asked).length > 0 ? { metadata: { [extension.question]: asked } } : {};
  return { ...agentMessage(task, `q${id}`, partsOf(message)), ...metadata };
}

const errorOf = (task: Conversation, { message, code, data }: ErrorBody): TaskMessage => ({
  ...agentMessage(task, 'error', [{ text: message }]),
  metadata: { [extension.error]: { code, data } },
});

/** A message of the agent; its id has the task's in it. */
export const agentMessage = (
  { taskId, contextId }: Conversation,
  id: string,
  parts: readonly TaskPart[],
): TaskMessage => ({
  messageId: `${taskId}.${id}`,
  contextId,
  taskId,
  role: 'ROLE_AGENT',
  parts,
});

/** A message has one part at least. */
const partsOf = ({ parts }: Message): TaskPart[] => {
  const said = parts.filter(isResult).map(taskPartOf);
  return said.length > 0 ? said : [{ text: '' }];
};

/** A message of a client, with the id that the client has given it; otherwise `id`. */
function givenMessage({ taskId, contextId }: Conversation, id: string, message: Message): TaskMessage {
  const given: unknown = Reflect.get(message, 'id');
  return {
    messageId: typeof given === 'string' ? given : `${taskId}.${id}`,
    contextId,
    taskId,
    role: message.role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
    parts: partsOf(message),
  };
}

/** The messages so far, and at most the last `length` of them: the input, then each question that has a reply. */
function historyOf(
  task: Conversation,
  { questions = [] }: Pick<Run, 'questions'>,
  input: readonly Message[],
  length?: number,
): TaskMessage[] {
  const said = [
    ...input.map((message, index) => givenMessage(task, `in${index + 1}`, message)),
    ...questions.flatMap(({ request, reply }, index) =>
      reply === undefined ? [] : [questionOf(task, request), givenMessage(task, `re${index + 1}`, reply.message)],
    ),
  ];
  return length === undefined ? said : said.slice(Math.max(0, said.length - length));
}

/** A message is an artifact; so is each of its parts that has a name. */
function artifactsOf(output: readonly Message[]): Artifact[] {
  const artifacts: (Artifact & { parts: TaskPart[] })[] = [];
  const begin = (parts: TaskPart[], more: Pick<Artifact, 'name' | 'metadata'> = {}): TaskPart[] => {
    artifacts.push({ artifactId: artifactId(artifacts.length + 1), ...more, parts });
    return parts;
  };
  for (const message of output) {
    let said: TaskPart[] | undefined;
    for (const part of message.parts.filter(isResult)) {
      if (part.name !== undefined && isNamed(part)) begin([taskPartOf(part)], { name: part.name });
      else if (said === undefined) said = begin([taskPartOf(part)], markOf(message.finish_reason));
      else said.push(taskPartOf(part));
    }
  }
  return artifacts;
}

/** What a request leaves out of a task. */
export interface TaskExtent {
  readonly historyLength?: number;
  readonly includeArtifacts?: boolean;
}

export function taskOf(
  task: Conversation,
  run: Run,
  input: readonly Message[],
  { historyLength, includeArtifacts = true }: TaskExtent = {},
): Task {
  const artifacts = includeArtifacts ? artifactsOf(run.output) : [];
  const history = historyOf(task, run, input, historyLength);
  return {
    id: task.taskId,
    contextId: task.contextId,
    status: statusOf(task, run),
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
  };
}
