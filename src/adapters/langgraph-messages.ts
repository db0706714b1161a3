import type { CutOff } from '../core/cut-off.ts';
import { isObject, parsed, readJson } from '../core/json.ts';
import { brokenOff } from '../core/model-errors.ts';
import { citationFrom, trajectory } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';
import type { RunUsage } from '../schema/run.ts';
import { cutOffFrom, toolBegun, toolEnded, toolFailed, usageOf } from './conversation.ts';

/** A message of LangChain, or a chunk of one, as far as the adapter reads it. */
export interface GraphMessage {
  readonly id?: string | undefined;
  readonly type: string;
  readonly content: unknown;
  readonly contentBlocks?: readonly Block[];
  readonly additional_kwargs?: Record<string, unknown>;
  readonly response_metadata?: Record<string, unknown>;
  readonly usage_metadata?:
    | { readonly input_tokens?: number; readonly output_tokens?: number; readonly total_tokens?: number }
    | undefined;
  tool_calls?: readonly { readonly id?: string; readonly name: string; readonly args: unknown }[];
  invalid_tool_calls?: readonly object[];
  readonly tool_call_chunks?: readonly ToolCallChunk[];
  readonly tool_call_id?: string;
  readonly status?: string | undefined;
  readonly name?: string | undefined;
}

interface ToolCallChunk {
  readonly id?: string | undefined;
  readonly index?: number | undefined;
  readonly name?: string | undefined;
  readonly args?: string | undefined;
}

/** What LangChain tells of a model's answers. */
export interface ModelAnswers {
  readonly generations: readonly (readonly {
    readonly message?: GraphMessage;
    readonly generationInfo?: Record<string, unknown> | undefined;
  }[])[];
}

type Block = Record<string, unknown> & { readonly type: string };

export interface Interrupt {
  readonly id: string;
  readonly value: unknown;
}

/** What a graph has streamed, as the journal of a durable run has it. `id` is that of the library's message. */
export type Piece =
  | { readonly type: 'text'; readonly id: string; readonly text: string }
  | { readonly type: 'part'; readonly id: string; readonly part: MessagePart }
  | { readonly type: 'usage'; readonly id: string; readonly usage: Partial<RunUsage> }
  | { readonly type: 'message-end'; readonly interrupted?: true; readonly cutOff?: CutOff }
  | { readonly type: 'interrupts'; readonly interrupts: readonly Interrupt[] };

interface Call {
  readonly name: string;
  args: string;
}

/**
 * Makes pieces of the messages that a graph streams: chunks, and whole messages. It knows the pieces of the run so far.
 * After a crash, a node makes its model call again. Text that repeats the text before the crash is left out. An answer that
 * differs becomes a new message, after the interrupted one.
 */
export class MessageReader {
  /** By message, the text that the readers have of it. */
  readonly #texts = new Map<string, string>();
  /** Messages of which a part or the usage was emitted. Tool messages have the ids of their calls. */
  readonly #seen = new Set<string>();
  /** Messages whose usage was emitted. */
  readonly #counted = new Set<string>();
  readonly #calls = new Map<string, Call>();
  /** The calls whose arguments are streaming, by their index. */
  readonly #open = new Map<number | undefined, Call>();
  #current: string | undefined;
  #reasoning = '';
  /** The messages that are not whole, and why. */
  readonly #cutOffs = new Map<string, CutOff>();
  /** The current message was cut off: the next one takes its place, and leaves out the text that it repeats. */
  #cutOff = false;
  #owed = '';
  #repeated = '';

  constructor(before: readonly Piece[]) {
    let text = '';
    for (const piece of before) {
      if ('id' in piece) this.#seen.add(piece.id);
      if (piece.type === 'usage') this.#counted.add(piece.id);
      if (piece.type === 'text') {
        text += piece.text;
        this.#texts.set(piece.id, text);
        this.#current = piece.id;
      }
      if (piece.type === 'message-end' || piece.type === 'interrupts') [text, this.#current] = ['', undefined];
    }
  }

  /**
   * Reads the messages of a state: what readers do not have of them is emitted. These are the messages that no model has
   * streamed, and after a crash those that the checkpoint has and the journal has not.
   */
  *readState(messages: readonly GraphMessage[]): Generator<Piece> {
    for (const message of messages) {
      const { id = '', tool_call_id, type } = message;
      const text = this.#texts.get(id);
      if (type === 'ai' && text !== undefined) {
        const whole = blocksOf(message).map(textOfBlock).join('');
        if (whole.length > text.length && whole.startsWith(text)) yield* this.#emit(id, whole.slice(text.length));
        if (!this.#counted.has(id)) yield* this.#usage(message);
      } else if (!this.#seen.has(tool_call_id ?? id)) yield* this.read(message);
    }
  }

  /** The calls of tools that a graph is about to execute: its state has them before their results. */
  *begin(messages: readonly GraphMessage[]): Generator<Piece> {
    for (const { type, tool_calls = [] } of messages) {
      if (type !== 'ai') continue;
      for (const { id = '', name, args } of tool_calls) {
        if (this.#seen.has(beginOf(id)) || this.#seen.has(id)) continue;
        this.#seen.add(beginOf(id));
        yield* this.end();
        yield { type: 'part', id: beginOf(id), part: toolBegun(id, name, args) };
      }
    }
  }

  /** Those that a model of this run has said: the state of a graph inside a node may begin with earlier runs. */
  streamed(messages: readonly GraphMessage[]): GraphMessage[] {
    return messages.filter(({ id = '' }) => this.#seen.has(id));
  }

  /** Remembers the calls of tools in the state. */
  learn(messages: readonly GraphMessage[]): void {
    for (const message of messages) this.#note(message);
  }

  /** After a crash: a message that is not in the state is made again. */
  resume(messages: readonly GraphMessage[]): void {
    this.#cutOff = this.#current !== undefined && !messages.some(({ id }) => id === this.#current);
    if (this.#cutOff) this.#owed = this.#texts.get(this.#current ?? '') ?? '';
  }

  *read(message: GraphMessage): Generator<Piece> {
    if (message.type === 'tool') yield* this.#tool(message);
    if (message.type !== 'ai') return;
    const { id = '' } = message;
    yield* this.#turnTo(id);
    this.#seen.add(id);
    this.#note(message);
    const { reasoning_content } = message.additional_kwargs ?? {};
    if (typeof reasoning_content === 'string') this.#reasoning += reasoning_content;
    for (const block of blocksOf(message)) {
      if (block.type === 'reasoning') this.#reasoning += String(block.reasoning ?? '');
      const parts = partsOfBlock(block);
      const text = textOfBlock(block);
      if (text !== '' || parts.length > 0) yield* this.end();
      yield* this.#text(id, text);
      for (const part of parts) yield { type: 'part', id, part };
    }
    yield* this.#usage(message);
  }

  *#usage({ id = '', usage_metadata }: GraphMessage): Generator<Piece> {
    if (usage_metadata === undefined) return;
    this.#counted.add(id);
    const { input_tokens, output_tokens, total_tokens } = usage_metadata;
    yield { type: 'usage', id, usage: usageOf(input_tokens, output_tokens, total_tokens) };
  }

  /**
   * A call of a model has ended: LangChain tells only there why.
   * @throws AgentError where the answer has no end mark
   */
  answered({ generations }: ModelAnswers): void {
    for (const { message, generationInfo } of generations.flat()) {
      const reason = reasonOf(message, generationInfo);
      if (message?.response_metadata?.model_provider === 'openai' && typeof reason !== 'string') throw brokenOff();
      const cutOff = cutOffFrom(reason);
      if (cutOff === undefined || message === undefined) continue;
      if (message.id !== undefined) this.#cutOffs.set(message.id, cutOff);
      refuseHalfCalls(message);
    }
  }

  /** The reasoning so far, as one step. */
  *end(): Generator<Piece> {
    const message = this.#reasoning;
    this.#reasoning = '';
    if (message !== '') yield { type: 'part', id: this.#current ?? '', part: trajectory({ message }) };
  }

  /** The end of a last message that is not whole. */
  *endCutOff(): Generator<Piece> {
    if (this.#cutOffs.has(this.#current ?? '')) yield this.#messageEnd();
  }

  #messageEnd(): Piece {
    const cutOff = this.#cutOffs.get(this.#current ?? '');
    return { type: 'message-end', ...(cutOff !== undefined && { cutOff }) };
  }

  *#turnTo(id: string): Generator<Piece> {
    if (this.#current === id) return;
    yield* this.end();
    if (!this.#cutOff) {
      [this.#owed, this.#repeated] = ['', ''];
      if (this.#current !== undefined) yield this.#messageEnd();
    }
    this.#cutOff = false;
    this.#current = id;
  }

  *#text(id: string, text: string): Generator<Piece> {
    if (text !== '' && this.#owed.startsWith(text)) {
      this.#owed = this.#owed.slice(text.length);
      this.#repeated += text;
      this.#texts.set(id, this.#repeated);
      return;
    }
    let rest = text;
    if (this.#owed !== '' && text !== '') {
      if (text.startsWith(this.#owed)) {
        rest = text.slice(this.#owed.length);
        this.#texts.set(id, this.#repeated + this.#owed);
      } else {
        rest = this.#repeated + text;
        this.#texts.delete(id);
        yield { type: 'message-end', interrupted: true };
      }
      [this.#owed, this.#repeated] = ['', ''];
    }
    yield* this.#emit(id, rest);
  }

  *#emit(id: string, text: string): Generator<Piece> {
    if (text === '') return;
    this.#texts.set(id, `${this.#texts.get(id) ?? ''}${text}`);
    yield { type: 'text', id, text };
  }

  *#tool({ tool_call_id = '', name, content, status }: GraphMessage): Generator<Piece> {
    if (this.#seen.has(tool_call_id)) return;
    this.#seen.add(tool_call_id);
    this.#current ??= tool_call_id;
    yield* this.end();
    const call = this.#calls.get(tool_call_id);
    const output = typeof content === 'string' ? parsed(content) : content;
    const tool = name ?? call?.name ?? 'tool';
    if (!this.#seen.has(beginOf(tool_call_id)))
      yield {
        type: 'part',
        id: beginOf(tool_call_id),
        part: toolBegun(tool_call_id, tool, parsed(call?.args ?? '{}')),
      };
    const isError = status === 'error' && typeof content === 'string';
    const part = isError ? toolFailed(tool_call_id, tool, content) : toolEnded(tool_call_id, tool, output);
    yield { type: 'part', id: tool_call_id, part };
  }

  /** Remembers the calls of tools, whose results come in other messages. */
  #note({ type, tool_calls = [], tool_call_chunks = [] }: GraphMessage): void {
    if (type !== 'ai') return;
    for (const { id, index, name, args = '' } of tool_call_chunks) {
      const known = this.#open.get(index);
      if (id === undefined || this.#calls.get(id) !== undefined) {
        if (known !== undefined) known.args += args;
        continue;
      }
      const call = { name: name ?? '', args };
      this.#open.set(index, call);
      this.#calls.set(id, call);
    }
    if (tool_call_chunks.length > 0) return;
    for (const { id = '', name, args } of tool_calls) this.#calls.set(id, { name, args: JSON.stringify(args ?? {}) });
  }
}

/**
 * Makes the calls of an answer that was cut off invalid if their arguments are not whole, so that no tool gets them.
 * LangChain completes the arguments of a streamed call as far as they came. An answer that it has not streamed has no chunks,
 * and its half calls are invalid already.
 */
function refuseHalfCalls(message: GraphMessage): void {
  const { tool_calls = [], invalid_tool_calls = [], tool_call_chunks = [] } = message;
  const half = tool_call_chunks.filter(({ args = '' }) => args !== '' && readJson(args) === undefined);
  if (half.length === 0) return;
  const error = 'The answer was cut off in the arguments of this call.';
  message.tool_calls = tool_calls.filter(({ id }) => !half.some((chunk) => chunk.id === id));
  message.invalid_tool_calls = [
    ...invalid_tool_calls,
    ...half.map(({ id, name, args }) => ({ type: 'invalid_tool_call', id, name, args, error })),
  ];
}

/** Why an answer ended, in the words of its provider. */
export function reasonOf(message: GraphMessage | undefined, info: Record<string, unknown> | undefined): unknown {
  const { stop_reason, status, incomplete_details: details } = message?.response_metadata ?? {};
  return info?.finish_reason ?? stop_reason ?? (isObject(details) ? details.reason : status);
}

/** The id of the piece with which a call begins. */
const beginOf = (tool_call_id: string): string => `call ${tool_call_id}`;

const blocksOf = ({ content, contentBlocks }: GraphMessage): readonly Block[] => {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return contentBlocks ?? (Array.isArray(content) ? content : []);
};

const textOfBlock = ({ type, text }: Block): string => (type === 'text' && typeof text === 'string' ? text : '');

function partsOfBlock(block: Block): MessagePart[] {
  const { type, annotations, data, url, mimeType } = block;
  if (type === 'text') return Array.isArray(annotations) ? annotations.flatMap(citationOf) : [];
  if (!['image', 'file', 'audio', 'video'].includes(type)) return [];
  const content_type = typeof mimeType === 'string' ? mimeType : 'application/octet-stream';
  if (typeof data === 'string') return [{ content_type, content_encoding: 'base64', content: data }];
  return typeof url === 'string' ? [{ content_type, content_url: url }] : [];
}

function citationOf(annotation: unknown): MessagePart[] {
  if (!isObject(annotation) || annotation.type !== 'citation') return [];
  const { url, title, startIndex: start_index, endIndex: end_index, citedText: description } = annotation;
  return [citationFrom({ url, title, start_index, end_index, description })];
}
