import type OpenAI from 'openai';
import { cutOffNotes, cutOffOf } from '../core/cut-off.ts';
import { textOf } from '../core/parts.ts';
import { type Said, type SaidCall, saidIn } from '../core/said.ts';
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
