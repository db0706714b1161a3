import type { AgentInputItem } from '@openai/agents';
import type { AgentOutput } from '../core/agent.ts';
import type { CutOff } from '../core/cut-off.ts';
import { parseDataUrl } from '../core/data-url.ts';
import { isObject, parsed } from '../core/json.ts';
import { citationFrom, endOfMessage, trajectory } from '../core/parts.ts';
import { goOn } from '../core/said.ts';
import type { MessagePart } from '../schema/message.ts';
import type { RunUsage } from '../schema/run.ts';
import { notExecuted, toolBegun, toolEnded, toolFailed, toolStep } from './conversation.ts';

interface Approval {
  readonly name: string;
  readonly input: unknown;
}

/** What the SDK has streamed, as the journal of a durable run has it. */
export type Piece =
  | { readonly type: 'text'; readonly text: string }
  /** A whole response of a model, whose text was streamed before. */
  | { readonly type: 'response'; readonly items: readonly AgentInputItem[]; readonly usage: Partial<RunUsage> }
  /** The model has not said all of its answer. */
  | { readonly type: 'cut-off'; readonly reason: CutOff }
  | { readonly type: 'result'; readonly items: readonly AgentInputItem[] }
  /** The agent that the next items are of: the first one, or the target of a handoff. */
  | { readonly type: 'agent'; readonly name: string }
  /** The SDK waits for approvals; `state` is its serialised RunState. */
  | { readonly type: 'interrupted'; readonly state: string; readonly approvals: readonly Approval[] }
  /** A call that was cut off before a person was asked for its approval. */
  | { readonly type: 'dropped'; readonly call: Call }
  /** The SDK is about to execute tools that were approved. */
  | { readonly type: 'approved' }
  | { readonly type: 'end' }
  /** A crash cut the stream off here. */
  | { readonly type: 'cut' };

export type Call = Extract<AgentInputItem, { type: 'function_call' }>;
type Result = Extract<AgentInputItem, { type: 'function_call_result' }>;

export const isCall = (item: AgentInputItem): item is Call => item.type === 'function_call';
const isResult = (item: AgentInputItem): item is Result => item.type === 'function_call_result';
export const itemsOf = (pieces: readonly Piece[]): AgentInputItem[] =>
  pieces.flatMap((piece) => ('items' in piece ? piece.items : []));

/** A result that the adapter gives a call in place of its tool. */
export const resultFor = ({ name, callId }: Call, output: string): AgentInputItem => ({
  type: 'function_call_result',
  name,
  callId,
  status: 'completed',
  output,
});

/** The ids of the calls that have a result. */
export const resultsIn = (items: readonly AgentInputItem[]) =>
  new Set(items.filter(isResult).map(({ callId }) => callId));

/** The text of the message that was cut off: what was streamed after the last response. */
function cutText(pieces: readonly Piece[]): string {
  const last = pieces.findLastIndex((piece) => 'items' in piece);
  return pieces.slice(last + 1).reduce((text, piece) => (piece.type === 'text' ? text + piece.text : text), '');
}

/** Whether the run would end here: the model has answered, and no call of a tool is open. */
export function isComplete(pieces: readonly Piece[]): boolean {
  if (pieces.some(({ type }) => type === 'end' || type === 'interrupted')) return true;
  return itemsOf(pieces).at(-1)?.type === 'message' && openCalls(pieces).length === 0 && cutText(pieces) === '';
}

/** The calls that have no result, and were not dropped. */
export function openCalls(pieces: readonly Piece[]): Call[] {
  const items = itemsOf(pieces);
  const done = resultsIn(items);
  for (const piece of pieces) if (piece.type === 'dropped') done.add(piece.call.callId);
  return items.filter(isCall).filter(({ callId }) => !done.has(callId));
}

/** The input with which the model continues after the pieces: calls without a result are left out. */
export function continued(history: readonly AgentInputItem[], pieces: readonly Piece[]): AgentInputItem[] {
  const items = [...history, ...itemsOf(pieces)];
  const done = resultsIn(items);
  const settled = items.filter((item) => !isCall(item) || done.has(item.callId));
  // A provider refuses reasoning that leads to nothing.
  while (settled.at(-1)?.type === 'reasoning') settled.pop();
  const text = cutText(pieces);
  if (text !== '') settled.push(assistantText(text));
  const last = settled.at(-1);
  if (last !== undefined && 'role' in last && last.role === 'assistant') settled.push({ role: 'user', content: goOn });
  return settled;
}

export const assistantText = (text: string): AgentInputItem => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

/** Makes output of the pieces of a run. Each answer of a model is a message, with the tools that it called. */
export class OutputOfPieces {
  /** The ids of the calls that were shown. After a crash, a model may use one again. */
  readonly #shown = new Set<string>();
  /** Text that was streamed, and is not in a response yet. */
  #streamed = '';
  /** Characters of the message so far: a citation counts from the beginning of its own text. */
  #chars = 0;
  #toolsEnded = false;

  *of(piece: Piece): Generator<AgentOutput> {
    if (piece.type === 'cut') this.#streamed = '';
    if (piece.type === 'cut-off') yield endOfMessage(piece.reason);
    if (piece.type === 'dropped') yield toolFailed(piece.call.callId, piece.call.name, notExecuted);
    if (this.#toolsEnded && (piece.type === 'text' || piece.type === 'response')) {
      this.#toolsEnded = false;
      this.#chars = 0;
      yield endOfMessage();
    }
    if (piece.type === 'text') {
      this.#streamed += piece.text;
      this.#chars += piece.text.length;
      yield piece.text;
    }
    if ('items' in piece) for (const item of piece.items) yield* this.#item(item);
    // One response may have several messages.
    if (piece.type === 'response') this.#streamed = '';
  }

  *#item(item: AgentInputItem): Generator<AgentOutput> {
    if (isCall(item)) {
      if (this.#shown.has(item.callId)) return;
      this.#shown.add(item.callId);
      yield toolBegun(item.callId, item.name, parsed(item.arguments));
    } else if (isResult(item)) {
      this.#toolsEnded = true;
      yield toolEnded(item.callId, item.name, outputOf(item));
    } else if (item.type === 'reasoning') {
      const message = [...item.content, ...(item.rawContent ?? [])].map(({ text }) => text).join('\n');
      if (message !== '') yield trajectory({ message });
    } else if (item.type === 'hosted_tool_call') yield* hostedCall(item);
    else if ('role' in item && item.role === 'assistant') {
      for (const content of item.content) {
        if (content.type === 'output_text') yield* this.#text(content.text, content.providerData);
        if (content.type === 'refusal') yield* this.#text(content.refusal, undefined);
        if (content.type === 'image') yield imagePart(content.image);
        if (content.type === 'audio' && typeof content.audio === 'string')
          yield {
            content_type: `audio/${content.format ?? 'wav'}`,
            content_encoding: 'base64',
            content: content.audio,
          };
      }
    }
  }

  /** A text of a whole message: most models have streamed it before. */
  *#text(text: string, data: Record<string, unknown> | undefined): Generator<AgentOutput> {
    let from = this.#chars - this.#streamed.length;
    if (this.#streamed.startsWith(text)) this.#streamed = this.#streamed.slice(text.length);
    else if (text !== '') {
      from = this.#chars;
      this.#chars += text.length;
      yield text;
    }
    if (Array.isArray(data?.annotations)) yield* data.annotations.flatMap((one) => citationOf(one, from));
  }
}

function outputOf({ output }: Result): unknown {
  if (typeof output === 'string') return parsed(output);
  return isObject(output) && output.type === 'text' && typeof output.text === 'string' ? parsed(output.text) : output;
}

function* hostedCall(item: Extract<AgentInputItem, { type: 'hosted_tool_call' }>): Generator<AgentOutput> {
  const { name, arguments: input = '{}', output, status } = item;
  if (name === 'image_generation_call' && output !== undefined) yield imagePart(output);
  else yield toolStep(name, parsed(input), output === undefined ? { status: status ?? 'completed' } : parsed(output));
}

/** An image by its address, or by its bytes in base64. */
function imagePart(image: string): MessagePart {
  if (/^https?:/.test(image)) return { content_type: 'image/*', content_url: image };
  const { mediaType = 'image/png', content = image } = parseDataUrl(image) ?? {};
  return { content_type: mediaType, content_encoding: 'base64', content };
}

/** `from`: where the text of the annotation begins in the message. */
function citationOf(annotation: unknown, from: number): MessagePart[] {
  if (!isObject(annotation) || typeof annotation.url !== 'string') return [];
  const { url, title, start_index, end_index } = annotation;
  const placed = (index: unknown): unknown => (typeof index === 'number' ? from + index : undefined);
  return [citationFrom({ url, title, start_index: placed(start_index), end_index: placed(end_index) })];
}
