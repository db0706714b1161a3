import jsonpatch from 'fast-json-patch';
import { toLine } from '../../core/encode.ts';
import { textOf } from '../../core/parts.ts';
import { runEventOf } from '../../core/recognize.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Position } from '../../http/sse/projection.ts';
import type { RunEvent } from '../../schema/event.ts';
import type { Message, MessagePart } from '../../schema/message.ts';
import { kindOf } from '../part-kinds.ts';
import { type AgUiRun, dataOf, frameOf, runStarted, toolAvailable } from './projection.ts';

/** A message as clients keep it. */
interface ClientMessage {
  readonly id: string;
  readonly role: string;
  content?: string | readonly object[];
  toolCalls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
  readonly toolCallId?: string;
  readonly error?: string;
  metadata?: object;
}

/** The fields of the events that are folded here. */
interface Folded {
  readonly type: string;
  readonly messageId: string;
  readonly toolCallId: string;
  readonly toolCallName: string;
  readonly parentMessageId?: string;
  readonly delta: string & readonly jsonpatch.Operation[];
  readonly content: string;
  readonly snapshot: unknown;
  readonly metadata?: object;
  readonly name: string;
  readonly value: { readonly toolCallId?: unknown };
}

const opens = /^(TEXT_MESSAGE|TOOL_CALL|REASONING_MESSAGE|REASONING)_START$/;
const closes = /^(TEXT_MESSAGE|TOOL_CALL|REASONING_MESSAGE|REASONING)_END$/;

/**
 * What a client has after some frames: the messages and the state, as the official client folds them, and what is still
 * open. It is made for a client that comes back, from the frames themselves, so it cannot differ from them.
 */
export class Transcript {
  readonly messages: ClientMessage[];
  state: unknown;
  /** Whether the run of the client has begun, and not ended. */
  started = false;
  /** Events that are in no message: files, data, citations and the agent's own. */
  readonly #customs: { readonly data: string; readonly toolCallId: unknown }[] = [];
  readonly #open = new Map<string, string>();
  readonly #said = new Map<string, ClientMessage>();
  readonly #calls = new Map<string, { arguments: string }>();
  /** The last call that has no result. Where the run of the client ends, the client has to answer it. */
  #unanswered: string | undefined;
  #asked: string | undefined;

  /**
   * Begins with the messages and the state of the client's request, or with the input of a run that was made in another protocol.
   */
  constructor({ protocol, metadata, state }: AgentRequest, input: readonly Message[], modern = true) {
    const given = protocol === 'ag-ui' ? metadata?.messages : undefined;
    this.messages = Array.isArray(given) ? [...given] : input.map((message, n) => clientMessage(message, n, modern));
    // Patches change it in place.
    this.state = structuredClone(state);
  }

  /** The events that open again what is open, in their order. */
  get open(): string[] {
    return [...this.#open.values()];
  }

  /** What a client has seen beside the messages and the state, in its order. */
  get customs(): string[] {
    return this.#customs.map(({ data }) => data);
  }

  /** Takes an event of the log and its frames. */
  add(line: string, frames: readonly string[]): void {
    if (runEventOf(line) === 'in-progress') this.#addReply(JSON.parse(line));
    for (const frame of frames) this.#fold(dataOf(frame));
  }

  /** The client has the result of its tool in a message of its own, whose id came with it. */
  #addReply({ run: { await_resume } }: RunEvent): void {
    const toolCallId = this.#asked;
    this.#asked = undefined;
    if (toolCallId === undefined || await_resume === undefined) return;
    // The tool has run: a client that saw its event again would run it again.
    const ran = this.#customs.findIndex((custom) => custom.toolCallId === toolCallId);
    if (ran >= 0) this.#customs.splice(ran, 1);
    const { message } = await_resume;
    const id = 'id' in message ? message.id : undefined;
    const error = 'error' in message ? message.error : undefined;
    // The client has it right after the call, and before what the agent has said while it awaited.
    const call = this.messages.findIndex((one) => 'toolCalls' in one && one.toolCalls?.at(-1)?.id === toolCallId);
    this.messages.splice(call + 1, 0, {
      id: typeof id === 'string' ? id : `${toolCallId}.result`,
      role: 'tool',
      toolCallId,
      content: textOf(message),
      ...(typeof error === 'string' && { error }),
    });
  }

  #fold(data: string): void {
    const event: Folded = JSON.parse(data);
    const { type, messageId, toolCallId, delta } = event;
    const key = `${type.slice(0, type.lastIndexOf('_'))} ${toolCallId ?? messageId}`;
    if (opens.test(type)) this.#open.set(key, data);
    else if (closes.test(type)) this.#open.delete(key);
    switch (type) {
      case 'RUN_STARTED':
      case 'RUN_FINISHED':
      case 'RUN_ERROR':
        this.started = type === 'RUN_STARTED';
        this.#asked = type === 'RUN_FINISHED' ? this.#unanswered : this.#asked;
        this.#unanswered = undefined;
        return;
      case 'TEXT_MESSAGE_START':
        this.#say({ id: messageId, role: 'assistant', content: '' });
        return;
      case 'REASONING_MESSAGE_START':
        this.#say({ id: messageId, role: 'reasoning', content: '' });
        return;
      case 'TEXT_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CONTENT':
        this.#append(messageId, delta);
        return;
      case 'TEXT_MESSAGE_END':
        this.#mark(event);
        return;
      case 'TOOL_CALL_START':
        this.#call(event);
        return;
      case 'TOOL_CALL_ARGS': {
        const call = this.#calls.get(toolCallId);
        if (call !== undefined) call.arguments += delta;
        return;
      }
      case 'TOOL_CALL_RESULT':
        this.#unanswered = undefined;
        this.#say({ id: messageId, toolCallId, role: 'tool', content: event.content });
        return;
      case 'STATE_SNAPSHOT':
        this.state = event.snapshot;
        return;
      case 'STATE_DELTA':
        this.#patch(delta);
        return;
      case 'CUSTOM':
        this.#customs.push({ data, toolCallId: event.name === toolAvailable ? event.value.toolCallId : undefined });
    }
  }

  #say(message: ClientMessage): void {
    this.messages.push(message);
    this.#said.set(message.id, message);
  }

  #append(id: string, delta: string): void {
    const message = this.#said.get(id);
    if (message !== undefined) message.content = `${message.content}${delta}`;
  }

  #mark({ messageId, metadata }: Folded): void {
    const message = this.#said.get(messageId);
    if (message !== undefined && metadata !== undefined) message.metadata = metadata;
  }

  #call({ toolCallId, toolCallName, parentMessageId = toolCallId }: Folded): void {
    if (!this.#said.has(parentMessageId)) this.#say({ id: parentMessageId, role: 'assistant' });
    const message = this.#said.get(parentMessageId);
    const call = { name: toolCallName, arguments: '' };
    this.#calls.set(toolCallId, call);
    this.#unanswered = toolCallId;
    if (message === undefined) return;
    message.toolCalls ??= [];
    message.toolCalls.push({ id: toolCallId, type: 'function', function: call });
  }

  /**
   * As the client does: a patch that does not fit changes nothing. One operation in place does so, but for a move, which
   * removes first. Others take a copy of the state, which costs as much as the state is large.
   */
  #patch(patch: readonly jsonpatch.Operation[]): void {
    const inPlace = patch.length === 1 && patch[0]?.op !== 'move';
    try {
      this.state = jsonpatch.applyPatch(this.state, patch, true, inPlace).newDocument;
    } catch {
      // The client warns of it. A reader of this state cannot.
    }
  }
}

/**
 * The frames with which a reader begins at a place: they start the run, and what is open there. A reader without a cursor
 * gets the state, the messages and the events that are in neither as well.
 */
export function leadOf(
  { state, messages, customs, open }: Transcript,
  run: AgUiRun,
  run_id: string,
  { from, cursor }: { readonly from: Position; readonly cursor: Position | undefined },
): string[] {
  const snapshots = [
    ...(state === undefined ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: state }]),
    { type: 'MESSAGES_SNAPSHOT', messages },
  ];
  const before = cursor === undefined ? [...snapshots.map(toLine), ...customs] : [];
  const data = [runStarted(run, run_id), ...before, ...open];
  const last = data.length - 1;
  // Only the last one has an id: a reader that has a part of them begins anew.
  return data.map((one, index) => {
    if (index < last || from.frames < 0) return `data: ${one}\n\n`;
    return frameOf(`${from.event}${from.frames < Number.POSITIVE_INFINITY ? `.${from.frames}` : ''}`, one);
  });
}

/** A message of the input of a run that was made in another protocol. Only a user's message may have files. */
function clientMessage({ role, parts }: Message, index: number, modern: boolean) {
  const isUser = role === 'user';
  const hasFiles = isUser && parts.some((part) => kindOf(part).kind !== 'text');
  return {
    id: `input.${index}`,
    role: isUser ? 'user' : 'assistant',
    content: hasFiles ? parts.map((part) => inputPart(part, modern)) : textOf({ parts }),
  };
}

/** A part as the request of a client has it: the inverse of `partOf` in `input-messages.ts`. */
function inputPart(part: MessagePart, modern: boolean): object {
  const known = kindOf(part);
  if (known.kind !== 'file') return { type: 'text', text: known.kind === 'text' ? known.text : (part.content ?? '') };
  const { url, base64, mediaType: mimeType, name } = known;
  const named = name !== undefined && { filename: name };
  if (!modern) return { type: 'binary', mimeType, ...(base64 === undefined ? { url } : { data: base64 }), ...named };
  const [kind = ''] = mimeType.split('/', 1);
  const type = ['image', 'audio', 'video'].includes(kind) ? kind : 'document';
  return {
    type,
    source: { type: base64 === undefined ? 'url' : 'data', value: base64 ?? url, mimeType },
    ...(named && { metadata: named }),
  };
}
