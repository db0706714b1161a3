import { type ErrorName, fail, RivuletError } from '../../core/errors.ts';
import { covers } from '../../core/media-types.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { runOptions } from '../../http/requests/run-requests.ts';
import type { RunHeaders } from '../../schema/api.ts';
import type { MessageInput } from '../../schema/message.ts';
import type { AwaitRequest, Run, RunDetails } from '../../schema/run.ts';
import { isYesOrNo } from '../part-kinds.ts';
import { reusedId } from '../request-errors.ts';
import type { Turn } from '../turns.ts';
import { createPushConfig, targetOf } from './push-configs.ts';
import type { SendMessageRequest } from './request.ts';
import { type BegunTask, conversationOf, findTask } from './stored-tasks.ts';
import { inputOf } from './task-parts.ts';

/** `begun`: of a task that the message has made. */
interface SentTurn extends Turn {
  readonly begun?: BegunTask;
}

/**
 * Creates a run with a message, or answers the question of the one that the message names. A message that comes again,
 * by its id, has made or resumed the same run.
 * @throws RivuletError as `Access.create` and `Access.resume`
 */
export async function send(
  own: Access,
  agent: string,
  asked: SendMessageRequest,
  headers: RunHeaders,
): Promise<SentTurn> {
  const { message, configuration: { acceptedOutputModes = [], taskPushNotificationConfig: push } = {} } = asked;
  const { messageId } = message;
  const contextId = message.contextId || undefined;
  const taskId = message.taskId || undefined;
  const session_id = contextId === undefined ? undefined : sessionIdFor(contextId);
  const options: RunOptions = {
    ...runOptions(headers),
    idempotency_key: headers['idempotency-key'] ?? messageId,
    key_scope: `a2a ${agent} ${taskId?.toLowerCase() ?? session_id ?? ''}`,
  };
  try {
    if (taskId !== undefined) {
      return await answer(own, await findTask(own, agent, taskId), asked, session_id, options);
    }
    await checkModes(own, agent, acceptedOutputModes);
    const input = [inputOf(message)];
    const request = requestOf(asked, contextId);
    const created = await own.create(
      { agent_name: agent, input, session_id },
      { ...options, request, ...(push !== undefined && { targets: [targetOf(push, contextId)] }) },
    );
    return { ...created, begun: { task: conversationOf(JSON.parse(created.run), request), input } };
  } catch (error) {
    if (error instanceof RivuletError && namesPlaces.has(error.kind)) throw inItsWords(error);
    throw reusedId(error, headers, 'message.messageId', 'came with another message before; send a new one for each');
  }
}

const namesPlaces: ReadonlySet<ErrorName> = new Set(['validation_failed', 'content_type_refused']);

/** The engine names the message by its place in a run or a reply, which this client has not sent. */
const inItsWords = ({ kind, message }: RivuletError): RivuletError =>
  new RivuletError(kind, message.replace(/\b(?:input\[0\]|await_resume\.message)(?=[.:])/, 'message'));

/** What the request says beside its message. */
function requestOf({ message, configuration, metadata, tenant }: SendMessageRequest, contextId?: string): AgentRequest {
  const { messageId, extensions = [], referenceTaskIds = [] } = message;
  const { acceptedOutputModes = [] } = configuration ?? {};
  return {
    protocol: 'a2a',
    conversation: contextId,
    metadata: {
      messageId,
      message: message.metadata,
      request: metadata,
      ...(acceptedOutputModes.length > 0 && { acceptedOutputModes }),
      ...(extensions.length > 0 && { extensions }),
      ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
      ...(tenant !== undefined && tenant !== '' && { tenant }),
    },
  };
}

async function answer(
  own: Access,
  run_id: string,
  { message, configuration }: SendMessageRequest,
  session_id: string | undefined,
  options: RunOptions,
): Promise<Turn> {
  const { idempotency_key: key = '', key_scope = '', channel = 'a2a' } = options;
  const known = await own.findKey(key_scope, key);
  if (known !== undefined) return known;
  const run: RunDetails = JSON.parse(await own.details(run_id));
  if (session_id !== undefined && session_id !== run.session_id) {
    throw fail('validation_failed', 'message.contextId', `expected that of task ${run_id}, or none`);
  }
  const push = configuration?.taskPushNotificationConfig;
  // A reply that will be refused leaves no config.
  if (push !== undefined && run.status === 'awaiting')
    await createPushConfig(own, async () => run_id, { ...push, taskId: run_id });
  return own.resume(run_id, replyOf(run, message), { ...options, channel });
}

/** A reply names the question that is open: an agent may ask the next one meanwhile. */
function replyOf({ await_request }: Pick<Run, 'await_request'>, message: SendMessageRequest['message']) {
  const given = inputOf(message);
  if (await_request === undefined) return { message: given };
  const { id } = await_request;
  return { id, message: saidYesOrNo(await_request, given) };
}

/** People answer a question for a yes or a no with a word. */
function saidYesOrNo(question: AwaitRequest, message: MessageInput): MessageInput {
  const [part, ...more] = message.parts;
  const [, word] = /^\s*(yes|no)[.!]?\s*$/i.exec(part?.content ?? '') ?? [];
  if (word === undefined || more.length > 0 || !isYesOrNo(question)) return message;
  const content = JSON.stringify(word.toLowerCase() === 'yes');
  return { ...message, parts: [{ content_type: 'application/json', content }] };
}

/** @throws RivuletError `content_type_refused` where the agent emits nothing that the client takes */
async function checkModes(own: Access, agent: string, accepted: readonly string[]): Promise<void> {
  if (accepted.length === 0) return;
  const { output_content_types: emitted } = await own.manifest(agent);
  if (accepted.some((mode) => emitted.some((range) => covers(range, mode) || covers(mode, range)))) return;
  const path = 'configuration.acceptedOutputModes';
  throw fail('validation_failed', path, `expected one of ${emitted.join(', ')}, which agent ${agent} emits`);
}
