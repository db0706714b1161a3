import { questionText } from '../../core/parts.ts';
import type { OpenCall, ToolResult } from '../../core/tool-calls.ts';
import type { CitationMetadata } from '../../schema/message.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import type { FilePart } from '../part-kinds.ts';

// The items of a response's output, as JSON.

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** The text of a message, with its annotations; both are JSON: the inside of a string, and that of a list. */
export const textPart = (text: string, annotations: string): string =>
  `{"type":"output_text","text":"${text}","annotations":[${annotations}],"logprobs":[]}`;

export const messageItem = (id: string, status: ItemStatus, content: string): string =>
  `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${content}]}`;

/**
 * A source. Clients ask for an address; without one there is none. The indexes are those of the text in the answer, where
 * `placeOf` finds those of the agent's message.
 */
export function urlCitation(
  { url, title, start_index: start = 0, end_index: end = start }: CitationMetadata,
  placeOf: (index: number, edge: 'start' | 'end') => number,
) {
  const start_index = placeOf(start, 'start');
  const end_index = Math.max(start_index, placeOf(end, 'end'));
  return { type: 'url_citation', start_index, end_index, url, title: title ?? url };
}

/** The name of the tool by which a client answers a question that is not one for a tool of its own. */
const askUser = 'ask_user';

/** How an agent's question is asked: a call of the tool that it names, where the client has that, or of `ask_user`. */
export function callOfQuestion(request: AwaitRequest, tools: readonly string[]): { name: string; arguments: string } {
  const { tool, schema } = request;
  if (tool !== undefined && tools.includes(tool.name))
    return { name: tool.name, arguments: JSON.stringify(tool.input ?? {}) };
  return { name: askUser, arguments: JSON.stringify({ message: questionText(request), ...(schema && { schema }) }) };
}

/** An address as Markdown has it. */
const addressOf = (url: string): string =>
  url.replace(/[\s()<>]/g, (char) => encodeURIComponent(char).replace(/[()]/g, hex));
const hex = (char: string): string => `%${char.charCodeAt(0).toString(16)}`;

/** A file as a link, where the protocol has no other place for it; an image is shown. */
export function linkTo({ url, mediaType, name }: FilePart): string {
  const shown =
    (name ?? (/^data:/i.test(url) ? mediaType : (url.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? ''))) || 'file';
  const text = shown.replace(/[[\]\\]/g, '\\$&').replace(/\s/g, ' ');
  return `\n\n${mediaType.startsWith('image/') ? '!' : ''}[${text}](${addressOf(url)})\n\n`;
}

/** The bytes of an image in base64; undefined for other files. */
export const imageBytes = ({ mediaType, base64 }: FilePart): string | undefined =>
  /^image\//i.test(mediaType) ? base64 : undefined;

/** An item that comes whole: how it begins, its frames in between, and the whole. All but the whole are events of the API. */
export interface WholeItem {
  readonly prefix: string;
  readonly begins: object;
  readonly between: readonly (readonly [type: string, fields: object])[];
  readonly whole: object;
}

type CallStatus = ItemStatus | 'failed';

/** A call of a tool that the server runs: `function_call` would ask the client to run it. */
export function toolCall(
  id: string,
  { name, tool_input }: OpenCall,
  label: string,
  status: CallStatus,
  { tool_output, tool_error }: ToolResult = {},
) {
  return {
    id,
    type: 'mcp_call',
    status,
    name,
    arguments: JSON.stringify(tool_input),
    server_label: label,
    output: tool_output === undefined ? null : JSON.stringify(tool_output),
    error: tool_error ?? null,
  };
}

export function reasoning(text: string): WholeItem {
  const part = { type: 'summary_text', text };
  return {
    prefix: 'rs',
    begins: { status: 'in_progress', summary: [] },
    between: [
      ['response.reasoning_summary_part.added', { summary_index: 0, part: { type: 'summary_text', text: '' } }],
      ['response.reasoning_summary_text.delta', { summary_index: 0, delta: text }],
      ['response.reasoning_summary_text.done', { summary_index: 0, text }],
      ['response.reasoning_summary_part.done', { summary_index: 0, part }],
    ],
    whole: { type: 'reasoning', status: 'completed', summary: [part] },
  };
}

export const imageCall = (result: string, mediaType: string): WholeItem => ({
  prefix: 'ig',
  begins: { status: 'in_progress', result: null },
  between: [['response.image_generation_call.completed', {}]],
  whole: {
    type: 'image_generation_call',
    status: 'completed',
    result,
    output_format: mediaType.slice('image/'.length),
  },
});
