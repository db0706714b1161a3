import { isInterrupted } from '../../core/cut-off.ts';
import { parseDataUrl, partOfDataUrl } from '../../core/data-url.ts';
import { isObject } from '../../core/json.ts';
import type { AgentRequest } from '../../core/request.ts';
import { FinishReason, type MessageInput, type MessagePart } from '../../schema/message.ts';
import { clientTool, objectIn } from '../part-kinds.ts';
import { isSaid, type Part, type RunAgentInput, type Said, type Source } from './run-input.ts';

// The request of a client as agents see it. The client holds the history, edits it and cuts it, so all of it is input.

/**
 * The messages as the agent's input, without interrupted ones, which the next messages say anew. A tool's call and its result
 * are one part of the message that has the call. @throws RivuletError `validation_failed`
 */
export function inputOf(agent: string, messages: RunAgentInput['messages']): MessageInput[] {
  const calls = new Map<string, Call>();
  return messages.flatMap((message, index) => {
    if (!isSaid(message)) return [];
    const mark = markOf(message);
    const parts = isInterrupted(mark) ? [] : partsOf(message, calls, `messages[${index}].content`);
    return parts.length === 0 ? [] : [{ role: message.role === 'user' ? 'user' : `agent/${agent}`, parts, ...mark }];
  });
}

const reasons: readonly FinishReason[] = FinishReason.anyOf.map(({ const: reason }) => reason);

/** Why a message is not whole, as the stream has told the client. */
function markOf({ metadata }: Said): { finish_reason?: FinishReason } {
  const reason = isObject(metadata) ? reasons.find((one) => one === metadata.finish_reason) : undefined;
  return reason === undefined ? {} : { finish_reason: reason };
}

/** What else the request says. */
export function requestOf(input: RunAgentInput): AgentRequest {
  const { threadId, runId, protocolVersion, parentRunId, state, messages, tools = [], context, forwardedProps } = input;
  const instructions = messages.filter(isSaid).filter(({ role }) => role === 'system' || role === 'developer');
  return {
    protocol: 'ag-ui',
    conversation: threadId,
    ...(instructions.length > 0 && { instructions: instructions.map(textIn).join('\n\n') }),
    ...(tools.length > 0 && { tools: tools.map((tool) => clientTool(tool.name, tool)) }),
    ...(state !== undefined && state !== null && { state }),
    metadata: {
      runId,
      protocolVersion,
      parentRunId,
      ...(context !== undefined && context.length > 0 && { context }),
      ...(forwardedProps !== undefined && forwardedProps !== null && { forwardedProps }),
      // As they came: a page that reloads gets them back, with their ids.
      messages,
    },
  };
}

/** The part of a tool's call, until its result is known. */
type Call = MessagePart & { metadata: { kind: 'trajectory'; tool_output?: Record<string, unknown> } };

function partsOf(message: Said, calls: Map<string, Call>, path: string): MessagePart[] {
  switch (message.role) {
    case 'user':
      return contentOf(message, path);
    case 'assistant':
      return [...contentOf(message, path), ...(message.toolCalls ?? []).map((call) => callOf(call, calls))];
    case 'reasoning':
      return [{ metadata: { kind: 'trajectory', message: textIn(message) } }];
    case 'tool':
      return resultOf(message, calls);
    default:
      return [];
  }
}

function callOf(
  { id, function: { name, arguments: text } }: NonNullable<Said['toolCalls']>[number],
  calls: Map<string, Call>,
) {
  const tool_input = objectIn(text);
  const call: Call = { metadata: { kind: 'trajectory', tool_name: name, tool_input } };
  calls.set(id, call);
  return call;
}

/** Adds a result to its call. A result without a call is a part of its own. */
function resultOf(message: Said, calls: Map<string, Call>): MessagePart[] {
  const { toolCallId = '', error } = message;
  const text = textIn(message);
  const tool_output = error === undefined ? (objectIn(text) ?? { result: text }) : { error, result: text };
  const call = calls.get(toolCallId);
  if (call === undefined) return [{ metadata: { kind: 'trajectory', tool_name: 'tool', tool_output } }];
  call.metadata.tool_output = tool_output;
  return [];
}

function contentOf({ content = '' }: Said, path: string): MessagePart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ content_type: 'text/plain', content }];
  return content.flatMap((part, index) => partOf(part, `${path}[${index}]`));
}

/** The text of a message. */
export const textIn = (message: Said): string =>
  typeof message.content === 'string' ? message.content : (message.content ?? []).map(({ text = '' }) => text).join('');

const types: Record<string, string> = { image: 'image/*', audio: 'audio/*', video: 'video/*' };

/** Parts whose bytes are with the provider of a model are left out, as the protocol asks of a peer that cannot read them. */
function partOf({ type, text, source, mimeType, data, url, filename }: Part, path: string): MessagePart[] {
  const name = filename === undefined ? {} : { name: filename };
  if (type === 'text') return [{ content_type: 'text/plain', content: text ?? '' }];
  if (source !== undefined) return mediaOf(source, types[type], path).map((part) => ({ ...part, ...name }));
  if (data !== undefined) return [{ ...bytes(data, mimeType), ...name }];
  return url === undefined ? [] : mediaOf({ type: 'url', value: url, ...(mimeType && { mimeType }) }, undefined, path);
}

function mediaOf(source: Source, type = 'application/octet-stream', path: string): MessagePart[] {
  if (source.type === 'file') return [];
  if (source.type === 'data') return [bytes(source.value, source.mimeType ?? type)];
  const data = parseDataUrl(source.value);
  if (data === undefined) return [{ content_type: source.mimeType ?? type, content_url: source.value }];
  return [{ ...partOfDataUrl(data, path), content_type: source.mimeType ?? (data.mediaType || type) }];
}

const bytes = (content: string, content_type = 'application/octet-stream'): MessagePart => ({
  content_type,
  content_encoding: 'base64',
  content,
});
