import type OpenAI from 'openai';
import { parsed } from '../core/json.ts';
import { textOf } from '../core/parts.ts';
import { cutOffNotes, cutOffOf } from '../core/run-state.ts';
import { type Said, type SaidCall, saidIn } from '../core/said.ts';
import type { ModelMessage, ModelPart } from '../schema/diagnostic.ts';
import type { Message, MessagePart } from '../schema/message.ts';

/** A message of OpenAI's chat completions. */
export type ChatMessage = OpenAI.ChatCompletionMessageParam;

/**
 * A conversation for a model: texts and images of users, and what the agent has said, with the calls of its tools and their
 * results. A message that was cut off says so at its end.
 */
export const chatMessages = (messages: readonly Message[]): ChatMessage[] => saidIn(messages).flatMap(chatMessageOf);

function chatMessageOf({ role, parts, calls, message, ends }: Said): ChatMessage[] {
  const cutOff = ends ? cutOffOf(message) : undefined;
  const text = textOf({ role, parts: [...parts] });
  const content = cutOff === undefined ? text : `${text}\n\n[${cutOffNotes[cutOff]}]`;
  if (role === 'user') {
    const images = parts.flatMap(imageOf);
    return [{ role: 'user', content: images.length === 0 ? content : [{ type: 'text', text: content }, ...images] }];
  }
  return calls.length === 0
    ? [{ role: 'assistant', content }]
    : [assistantMessage(content, calls.map(callOf)), ...calls.map(resultOf)];
}

/** What a model has said, with its calls; `args` is JSON. */
export const assistantMessage = (
  content: string,
  calls: readonly { readonly id: string; readonly name: string; readonly args: string }[],
): OpenAI.ChatCompletionAssistantMessageParam => ({
  role: 'assistant',
  content,
  tool_calls: calls.map(({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: args } })),
});

const callOf = ({ id, name, input }: SaidCall) => ({ id, name, args: JSON.stringify(input) });

const resultOf = ({ id, result: { tool_output, tool_error } }: SaidCall): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content: tool_error ?? JSON.stringify(tool_output ?? { error: 'It has no result: its run ended before.' }),
});

function imageOf({
  content_type = '',
  content,
  content_encoding,
}: MessagePart): OpenAI.ChatCompletionContentPartImage[] {
  if (!/^image\//i.test(content_type) || content === undefined || content_encoding !== 'base64') return [];
  return [{ type: 'image_url', image_url: { url: `data:${content_type};base64,${content}` } }];
}

/** The same message in the form of the GenAI conventions. */
export function modelMessage(message: ChatMessage): ModelMessage {
  const { role, content } = message;
  if (message.role === 'tool') {
    const response = typeof content === 'string' ? parsed(content) : content;
    return { role, parts: [{ type: 'tool_call_response', id: message.tool_call_id, response }] };
  }
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
  return { role, parts: [...partsOf(content), ...calls.flatMap(callPart)] };
}

function partsOf(content: ChatMessage['content']): ModelPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', content }];
  return (content ?? []).map((part) => {
    if (part.type === 'text') return { type: 'text', content: part.text };
    if (part.type !== 'image_url') return { type: part.type };
    const { url } = part.image_url;
    // An image in the text would fill what is kept of the call.
    return url.startsWith('data:')
      ? { type: 'blob', mime_type: url.slice(5, url.indexOf(';')) }
      : { type: 'uri', uri: url };
  });
}

const callPart = (call: OpenAI.ChatCompletionMessageToolCall): ModelPart[] =>
  call.type === 'function'
    ? [{ type: 'tool_call', id: call.id, name: call.function.name, arguments: parsed(call.function.arguments) }]
    : [];
