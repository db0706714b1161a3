import { type Static, Type } from '@sinclair/typebox';
import { fail } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { AgentRequest, ClientTool } from '../../core/request.ts';
import { compile, open } from '../../core/validate.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import { MessageInput } from '../../schema/message.ts';
import type { AwaitResumeInput } from '../../schema/run.ts';
import { clientTool } from '../part-kinds.ts';
import { runIdIn } from '../run-place.ts';
import { awaitTool, callIdOf } from './projection.ts';
import { partsOf, type UIPart } from './ui-parts.ts';

const UIMessage = open({
  id: Type.Optional(Type.String({ maxLength: 1_000 })),
  role: Type.String(),
  parts: Type.Optional(Type.Array(open({ type: Type.String() }))),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
type UIMessage = Static<typeof UIMessage>;

/** What a chat posts. All further fields are the page's own, and go to the agent. */
export const ChatBody = open({
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  messages: Type.Optional(Type.Array(UIMessage, { maxItems: 10_000 })),
  message: Type.Optional(UIMessage),
  trigger: Type.Optional(Type.String()),
  messageId: Type.Optional(Type.String()),
  approvals: Type.Optional(Type.Boolean()),
  system: Type.Optional(Type.String()),
  tools: Type.Optional(Type.Unknown()),
});
type ChatBody = Static<typeof ChatBody>;

/** A user's message for the agent: a run. */
interface Said {
  readonly kind: 'said';
  readonly session_id: string | undefined;
  readonly message: MessageInput;
  readonly request: AgentRequest;
  /** The messages before it, where the session has to follow the chat: an earlier message was edited, or answered anew. */
  readonly kept: readonly UIMessage[] | undefined;
}

/** A reply to the question of a run. */
interface Reply {
  readonly kind: 'reply';
  readonly session_id: string | undefined;
  readonly run_id: string;
  readonly input: AwaitResumeInput;
}

export type ChatRequest = Said | Reply;

const checkMessage = compile(MessageInput, 'message');

/** @throws RivuletError `run_unknown`, or `validation_failed` that names the field */
export function readChat(body: ChatBody, approvals: boolean): ChatRequest {
  const { id, message, messages = message === undefined ? [] : [message], trigger, messageId } = body;
  const session_id = id === undefined ? undefined : sessionIdFor(id);
  const last = messages.at(-1);
  if (last === undefined) throw fail('validation_failed', 'messages', 'expected at least one');
  // A chat may go on while a question is open, so the answered message need not be the last one.
  const named = messages.findLast((one) => messageId !== undefined && one.id === messageId);
  const isNew = trigger === 'regenerate-message';
  const replied = !isNew && named?.role === 'assistant' ? named : last;
  if (!isNew && replied.role === 'assistant') return { kind: 'reply', session_id, ...replyIn(replied) };
  const path = body.messages === undefined ? 'message' : `messages[${messages.length - 1}]`;
  if (last.role !== 'user') {
    throw fail('validation_failed', `${path}.role`, `expected user or assistant, got ${last.role.slice(0, 60)}`);
  }
  if (last.parts === undefined) {
    throw fail('validation_failed', `${path}.parts`, 'expected a list, as AI SDK 5 and newer send it');
  }
  const follows = isNew || named === last;
  if (follows && body.messages === undefined) {
    throw fail('validation_failed', 'messages', 'expected all messages of the chat, to answer an earlier one anew');
  }
  return {
    kind: 'said',
    session_id,
    message: checkMessage(saidIn(last, path)),
    request: requestOf(body, messages, approvals),
    kept: follows ? messages : undefined,
  };
}

/** A user's message keeps its id and its metadata, so that a transcript has them. */
function saidIn({ id, parts = [], metadata }: UIMessage, path: string): MessageInput {
  return {
    role: 'user',
    parts: partsOf(parts, path),
    ...(id !== undefined && id !== '' && { id }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** What the agent sees of a request beside the message. */
function requestOf(body: ChatBody, messages: readonly UIMessage[], approvals: boolean): AgentRequest {
  const {
    id,
    messages: _,
    message: __,
    trigger: ___,
    messageId: ____,
    approvals: _____,
    system,
    tools,
    ...rest
  } = body;
  const said = messages.filter(({ role }) => role === 'system').map(({ parts = [] }) => textIn(parts));
  const instructions = [system ?? '', ...said].filter((text) => text !== '').join('\n\n');
  const metadata = { ...rest, ...(approvals && { approvals }) };
  const offered = toolsIn(tools);
  return {
    protocol: 'ai-sdk',
    ...(id !== undefined && sessionIdFor(id) !== id.toLowerCase() && { conversation: id }),
    ...(instructions !== '' && { instructions }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(offered.length > 0 && { tools: offered }),
  };
}

const textIn = (parts: readonly UIPart[]): string =>
  parts.map((part) => (part.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('');

/** Tools as assistant-ui sends them: by name. Others are left out. */
function toolsIn(tools: unknown): ClientTool[] {
  if (!isObject(tools)) return [];
  return Object.entries(tools).flatMap(([name, tool]) =>
    name === '' || !isObject(tool) ? [] : [clientTool(name, tool)],
  );
}

/**
 * The reply to the last question in a message of a run. Which question the run awaits is for the engine to say; all else
 * that the message claims is ignored. @throws RivuletError `run_unknown`, `validation_failed`
 */
function replyIn({ id = '', parts = [] }: UIMessage): Pick<Reply, 'run_id' | 'input'> {
  const run_id = runIdIn(id);
  const prefix = callIdOf(id);
  const asked = parts.findLast(
    ({ toolCallId }: UIPart) => typeof toolCallId === 'string' && toolCallId.startsWith(prefix),
  );
  const reply = asked === undefined ? undefined : replyOf(asked);
  if (asked === undefined || reply === undefined) {
    const wanted = 'expected the last message from the user, or one that answers the last question of its run';
    throw fail('validation_failed', 'messages', wanted);
  }
  const question = String(Reflect.get(asked, 'toolCallId')).slice(prefix.length);
  return { run_id, input: { message: reply, ...(question !== '' && { id: question }) } };
}

function replyOf(part: UIPart): MessageInput | undefined {
  const { state, output, errorText, approval, input } = part;
  const json = (value: unknown): MessageInput => ({
    parts: [{ content_type: 'application/json', content: JSON.stringify(value ?? null) }],
  });
  if (state === 'approval-responded' && isObject(approval) && typeof approval.approved === 'boolean') {
    const { approved, reason } = approval;
    return { ...json(approved), ...(typeof reason === 'string' && { reason }) };
  }
  if (state === 'output-error') return json({ error: String(errorText) });
  if (state !== 'output-available') return undefined;
  // A text is what a person typed, unless a schema says what it has to be.
  const hasSchema = nameOf(part) === awaitTool && isObject(input) && input.schema !== undefined;
  return typeof output === 'string' && !hasSchema ? { parts: [{ content: output }] } : json(output);
}

const nameOf = ({ type, toolName }: UIPart): unknown =>
  type === 'dynamic-tool' ? toolName : type.slice('tool-'.length);
