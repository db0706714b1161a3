import { Buffer } from 'node:buffer';
import { concatWith, type Observable, toArray } from 'rxjs';
import type { AgentContext } from '../core/agent.ts';
import { type CutOff, cutOffNotes, cutOffOf } from '../core/cut-off.ts';
import { isObject } from '../core/json.ts';
import { textOf, trajectory } from '../core/parts.ts';
import type { Said } from '../core/said.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { RunUsage } from '../schema/run.ts';

/** The messages of the session's history, and then the run's input. */
export const conversation = (input: readonly Message[], { session }: AgentContext): Observable<Message[]> =>
  session.history.pipe(concatWith(input), toArray());

/** A part's content as libraries take it: text, or a file by its bytes or its address. */
export type Content =
  | { readonly text: string }
  | { readonly base64: string; readonly type: string; readonly name: string | undefined }
  | { readonly url: string; readonly type: string; readonly name: string | undefined };

/**
 * The contents of a message for a model. Steps and citations are left out, and so are empty parts. A message that was cut off
 * says so at its end.
 */
export function contentsOf({ parts, ...message }: Pick<Message, 'parts' | 'finish_reason'>): Content[] {
  const contents = parts.flatMap((part) => contentOf(part) ?? []);
  const cutOff = cutOffOf(message);
  return cutOff === undefined ? contents : [...contents, { text: `\n\n[${cutOffNotes[cutOff]}]` }];
}

/** The contents of what was said. The last of a message says where that was cut off. */
export const contentsSaid = ({ parts, message, ends }: Said): Content[] =>
  contentsOf({ parts: [...parts], ...(ends && message.finish_reason && { finish_reason: message.finish_reason }) });

/** What a model is told of a call whose run ended before its result. */
export const noResult = 'The run ended before this call had a result. Whether it took effect is unknown.';

/** Why a model's answer is not whole, from what its library calls the reason. */
export const cutOffFrom = (reason: unknown): CutOff | undefined =>
  reason === 'length' || reason === 'max_output_tokens' || reason === 'max_tokens'
    ? 'length'
    : reason === 'content_filter' || reason === 'content-filter'
      ? 'content_filter'
      : undefined;

/** What people are told of a call that a crash cut off before its tool was allowed to run. The model is asked again without it. */
export const notExecuted = 'The process ended before this call was executed.';

function contentOf(part: MessagePart): Content | undefined {
  const { content = '', content_type: type = 'text/plain', content_encoding, content_url: url, metadata, name } = part;
  if (metadata !== undefined) return undefined;
  if (url !== undefined) return { url, type, name };
  if (content === '') return undefined;
  if (/^(text\/|application\/json\b)/i.test(type)) {
    const text = content_encoding === 'base64' ? textOf({ ...part, content_type: 'text/plain' }) : content;
    return { text: name === undefined ? text : `${name}:\n${text}\n` };
  }
  const base64 = content_encoding === 'base64' ? content : Buffer.from(content).toString('base64');
  return { base64, type, name };
}

/** The content's address, or its bytes as one. */
export const urlOf = (file: Exclude<Content, { text: string }>): string =>
  'url' in file ? file.url : `data:${file.type};base64,${file.base64}`;

/** A call of a tool with its result, as a step. What is no object is in the field `value`. */
export const toolStep = (tool_name: string, input: unknown, output: unknown): MessagePart =>
  trajectory({ tool_name, tool_input: asObject(input), tool_output: asObject(output) });

/** The beginning of a call, whose result follows. */
export const toolBegun = (tool_call_id: string, tool_name: string, input: unknown): MessagePart =>
  trajectory({ tool_name, tool_call_id, tool_input: asObject(input) });

export const toolEnded = (tool_call_id: string, tool_name: string, output: unknown): MessagePart =>
  trajectory({ tool_name, tool_call_id, tool_output: asObject(output) });

export const toolFailed = (tool_call_id: string, tool_name: string, tool_error: string): MessagePart =>
  trajectory({ tool_name, tool_call_id, tool_error });

const asObject = (value: unknown): Record<string, unknown> => (isObject(value) ? value : { value: value ?? null });

/** What a model call has used. Providers that report no number, or NaN, are no reason to fail the run after its answer. */
export function usageOf(input: unknown, output: unknown, total: unknown): Partial<RunUsage> {
  const counts = { tokens: total, input_tokens: input, output_tokens: output };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => Number.isFinite(count) && Number(count) >= 0));
}
