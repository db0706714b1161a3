import { Command } from '@langchain/langgraph';
import { concat, concatMap, defer, from, lastValueFrom, map, type Observable, switchMap, tap, toArray } from 'rxjs';
import type { AgentContext, AgentFunction, AgentOutput } from '../core/agent.ts';
import { AgentError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { brokenConnection } from '../core/model-errors.ts';
import { modelMessages, modelTools } from '../core/model-messages.ts';
import { endOfMessage, json } from '../core/parts.ts';
import { replyValue } from '../core/reply.ts';
import type { Message } from '../schema/message.ts';
import { contentsOf, conversation, noResult, urlOf } from './conversation.ts';
import {
  type GraphMessage,
  type Interrupt,
  MessageReader,
  type ModelAnswers,
  type Piece,
  reasonOf,
} from './langgraph-messages.ts';

/** A compiled graph of LangGraph, as far as the adapter uses it. */
export interface LangGraph {
  readonly checkpointer?: unknown;
  stream(input: unknown, options: object): PromiseLike<AsyncIterable<unknown>>;
  getState(config: object, options: object): PromiseLike<unknown>;
  getStateHistory(config: object): AsyncIterable<unknown>;
}

/** A message of the graph's input. */
export interface LangGraphInputMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly content: readonly Record<string, unknown>[];
}

export interface LangGraphOptions {
  /** The graph's input. Default: `{ messages }`. */
  readonly input?: (messages: LangGraphInputMessage[], context: AgentContext) => unknown;
  /** The thread of the run. Default: the id of the session. Only a graph with a checkpointer has threads. */
  readonly thread?: (context: AgentContext) => string;
  /** Further `configurable` values of the graph. */
  readonly configurable?: (context: AgentContext) => Record<string, unknown>;
}

/**
 * The function of an agent that is a graph of LangGraph 1. Each message of a model is one message of the output; an
 * `interrupt()` is a question, and the value of its reply resumes the graph.
 * With a checkpointer, the session is a thread and the graph gets the new messages only; a durable run continues from
 * the last checkpoint after a crash. Without one, the graph gets the session's history, and a durable run that was cut
 * off fails with `checkpointer_missing`.
 */
export function langGraphAgent(graph: LangGraph, options: LangGraphOptions = {}): AgentFunction {
  return (input, context) => {
    const messages = saverOf(graph) === undefined ? conversation(input, context) : from([input]);
    return messages.pipe(
      map((all) => all.flatMap((message, index) => toGraphMessage(message, `${context.run_id}:${index}`))),
      switchMap((all) => turn(options.input?.(all, context) ?? { messages: all }, new Thread(graph, options, context))),
    );
  };
}

/** The part of a checkpointer that tells how far a thread is. */
interface Saver {
  getTuple(config: object): PromiseLike<Tuple | undefined>;
}

interface Tuple {
  readonly checkpoint: { readonly id: string };
  readonly pendingWrites?: readonly (readonly [task: string, channel: string, value: unknown])[];
}

interface Snapshot {
  readonly values: unknown;
  readonly config: { readonly configurable: { readonly checkpoint_id?: string } };
  readonly tasks: readonly { readonly state?: unknown }[];
}

const saverOf = ({ checkpointer }: LangGraph): Saver | undefined =>
  isObject(checkpointer) && typeof checkpointer.getTuple === 'function'
    ? (checkpointer as unknown as Saver)
    : undefined;

/** A graph in the thread of a run. */
class Thread {
  readonly context: AgentContext;
  /** What the run has got of the graph, also in earlier executions. */
  readonly delivered: Piece[] = [];
  readonly #graph: LangGraph;
  readonly #config: { readonly configurable: Record<string, unknown> };
  /** Whether the thread is the session's. */
  readonly #ofSession: boolean;

  constructor(graph: LangGraph, { thread, configurable }: LangGraphOptions, context: AgentContext) {
    this.context = context;
    this.#graph = graph;
    this.#ofSession = thread === undefined;
    const thread_id = thread?.(context) ?? context.session.id;
    this.#config = { configurable: { ...configurable?.(context), thread_id } };
  }

  /**
   * How far the thread is: its checkpoint, and the replies that its tasks have taken since. Replies that were only sent
   * are stored under the ids of their questions. Undefined without a checkpointer.
   */
  async position(): Promise<string | undefined> {
    const saver = saverOf(this.#graph);
    if (saver === undefined) return undefined;
    const { checkpoint, pendingWrites = [] } = (await saver.getTuple(this.#config)) ?? {};
    const taken = pendingWrites.filter(([task, channel]) => channel === '__resume__' && task.includes('-'));
    return `${checkpoint?.id ?? 'new'} ${taken.flatMap(([, , value]) => value).length}`;
  }

  /**
   * Streams from `input`. If the thread is not at `start` any more, or has the input's messages, a crash came between: it
   * continues.
   */
  async *pieces(input: unknown, start: string | undefined, wasCut: boolean): AsyncGenerator<Piece> {
    const reader = new MessageReader(this.delivered);
    if (start === undefined) {
      if (wasCut) {
        const message = 'The run was cut off, and its graph has no checkpointer to continue from: compile it with one.';
        throw new AgentError('checkpointer_missing', message);
      }
      yield* this.#stream(input, reader);
      return;
    }
    const state = await this.#state();
    const messages = messagesIn(state);
    reader.learn(messages);
    const isNew = !messages.some(({ id }) => this.#isInput(id));
    if (start === (await this.position()) && input instanceof Command) yield* this.#stream(input, reader);
    else if (start === (await this.position()) && isNew) {
      const kept = await this.#kept(messagesOf(state.values));
      const from = kept?.config.configurable.checkpoint_id;
      yield* this.#stream(repaired(input, messagesOf((kept ?? state).values)), reader, from);
    } else {
      reader.resume(messages);
      yield* reader.readState(this.#own(messages));
      if (state.tasks.length > 0) yield* this.#stream(null, reader);
    }
  }

  /**
   * The state of the thread before the turns that the session has dropped, because a person had them answered again. Undefined
   * where the session has all turns, and for a thread that the option `thread` has named: it does not follow a session.
   */
  async #kept(messages: readonly GraphMessage[]): Promise<Snapshot | undefined> {
    if (!this.#ofSession) return undefined;
    const history = await lastValueFrom(this.context.session.history.pipe(toArray()));
    const dropped = firstDropped(messages, history);
    if (dropped === undefined) return undefined;
    for await (const one of this.#graph.getStateHistory(this.#config)) {
      const state = one as Snapshot;
      if (!messagesOf(state.values).some(({ id }) => id === dropped)) return state;
    }
    return undefined;
  }

  async *#stream(input: unknown, reader: MessageReader, from?: string): AsyncGenerator<Piece> {
    const { signal } = this.context;
    const streamMode = ['messages', 'values'];
    const calls = new ModelCalls(this.context, (answers) => reader.answered(answers));
    const options = {
      configurable: { ...this.#config.configurable, ...(from !== undefined && { checkpoint_id: from }) },
      streamMode,
      subgraphs: true,
      durability: 'sync',
      signal,
      callbacks: [calls.callbacks],
    };
    let values: unknown;
    // The state keeps the interrupts of tasks that have finished beside an open one; the stream has the open ones.
    const interrupts = new Map<string, Interrupt>();
    const stream = this.#graph.stream(input, options);
    for await (const chunk of calls.named(stream)) {
      // With `subgraphs` and several modes: the names of the graphs around it, the mode, and what the mode streams.
      const [path, mode, data] = chunk as [string[], string, unknown];
      if (mode === 'messages' && Array.isArray(data)) yield* reader.read(data[0]);
      else if (path.length === 0 && isObject(data) && Array.isArray(data.__interrupt__))
        for (const { id, value } of data.__interrupt__ as Interrupt[]) interrupts.set(id, { id, value });
      else if (path.length > 0) yield* reader.begin(reader.streamed(messagesOf(data)));
      // After an interrupt, the messages of the nodes beside it are not in the thread yet, and may get other ids.
      else if (interrupts.size === 0) {
        values = data;
        yield* reader.begin(this.#own(messagesOf(data)));
      }
    }
    yield* reader.readState(this.#own(messagesOf(values)));
    yield* reader.end();
    yield* reader.endCutOff();
    if (interrupts.size > 0) yield { type: 'interrupts', interrupts: [...interrupts.values()] };
  }

  /** The messages after the run's input: earlier ones belong to other runs. */
  #own(messages: readonly GraphMessage[]): GraphMessage[] {
    const last = messages.findLastIndex(({ id }) => this.#isInput(id));
    return last < 0 ? [] : messages.slice(last + 1);
  }

  #isInput(id: string | undefined): boolean {
    return id?.startsWith(`${this.context.run_id}:`) === true;
  }

  async #state(): Promise<Snapshot> {
    return (await this.#graph.getState(this.#config, { subgraphs: true })) as Snapshot;
  }
}

/** The graph until it ends or is interrupted; then again with the replies. */
function turn(input: unknown, thread: Thread): Observable<AgentOutput> {
  const { context } = thread;
  let interrupts: readonly Interrupt[] = [];
  const collect = (piece: Piece): void => {
    thread.delivered.push(piece);
    if (piece.type === 'interrupts') interrupts = piece.interrupts;
    if (piece.type === 'usage') context.usage(piece.usage);
  };
  const graph = context
    .step('langgraph-position', () => thread.position())
    .pipe(
      switchMap((start) =>
        context.step<Piece>(
          'langgraph',
          () => thread.pieces(input, start, false),
          () => thread.pieces(input, start, true),
        ),
      ),
    );
  const next = defer(() =>
    interrupts.length === 0
      ? []
      : from(interrupts).pipe(
          concatMap(({ id, value }) => context.await(questionOf(value)).pipe(map((reply) => [id, replyValue(reply)]))),
          toArray(),
          switchMap((replies) => turn(new Command({ resume: Object.fromEntries(replies) }), thread)),
        ),
  );
  return concat(graph.pipe(tap(collect), concatMap(outputsOf)), next);
}

function outputsOf(piece: Piece): AgentOutput[] {
  switch (piece.type) {
    case 'text':
      return [piece.text];
    case 'part':
      return [piece.part];
    case 'message-end':
      return [endOfMessage(piece.interrupted ? 'interrupted' : piece.cutOff)];
    default:
      return [];
  }
}

/** The value of an interrupt as a question: its text, and all of it as a JSON part. */
function questionOf(value: unknown): Message {
  if (typeof value === 'string') return { role: 'agent', parts: [{ content_type: 'text/plain', content: value }] };
  const { question, message, description } = isObject(value) ? value : {};
  const text = [question, message, description].find((one) => typeof one === 'string') ?? 'The graph needs a reply.';
  return { role: 'agent', parts: [{ content_type: 'text/plain', content: text }, json(value ?? null)] };
}

/**
 * The input of a run whose thread may end with calls of tools that have no result: the run before was cancelled, or ended by
 * a limit. Servers of models refuse such a call, so its result comes before the input.
 */
function repaired(input: unknown, thread: readonly GraphMessage[]): unknown {
  const last = thread.findLastIndex(({ type }) => type === 'ai');
  const after = thread.slice(last + 1);
  if (!after.every(({ type }) => type === 'tool') || !isObject(input) || !Array.isArray(input.messages)) return input;
  const done = new Set(after.map(({ tool_call_id }) => tool_call_id));
  const open = (thread[last]?.tool_calls ?? []).filter(({ id }) => !done.has(id));
  const results = open.map(({ id, name }) => ({ role: 'tool', tool_call_id: id, name, content: noResult }));
  return { ...input, messages: [...results, ...input.messages] };
}

/**
 * The id of the first input at the end of the thread that the session has no longer. Inputs have no name that the session
 * knows, so equal texts are counted.
 */
function firstDropped(thread: readonly GraphMessage[], history: readonly Message[]): string | undefined {
  const count = (texts: readonly string[], text: string): number => texts.filter((one) => one === text).length;
  const said = history.filter(({ role }) => role === 'user').map((message) => textsIn(contentsOf(message)));
  const inputs = thread.filter(({ id = '' }) => /^[\da-f-]{36}:\d+$/.test(id));
  const texts = inputs.map(({ content }) => textsIn(content));
  let dropped: string | undefined;
  while (texts.length > 0) {
    const text = texts.at(-1) ?? '';
    if (count(texts, text) <= count(said, text)) break;
    dropped = inputs[texts.length - 1]?.id;
    texts.pop();
  }
  return dropped;
}

const textsIn = (contents: unknown): string =>
  Array.isArray(contents)
    ? contents.map((one) => (isObject(one) ? String(one.text ?? '') : '')).join('\n')
    : String(contents);

const messagesOf = (values: unknown): GraphMessage[] =>
  isObject(values) && Array.isArray(values.messages) ? values.messages : [];

/** The messages in the state of a graph and of its subgraphs. */
function messagesIn({ values, tasks }: Snapshot): GraphMessage[] {
  const inner = tasks.flatMap(({ state }) =>
    isObject(state) && 'tasks' in state ? [state as unknown as Snapshot] : [],
  );
  return [...messagesOf(values), ...inner.flatMap(messagesIn)];
}

function toGraphMessage(message: Message, id: string): LangGraphInputMessage[] {
  const content = contentsOf(message).map((one) => {
    if ('text' in one) return { type: 'text', text: one.text };
    if (/^image\//i.test(one.type)) return { type: 'image_url', image_url: { url: urlOf(one) } };
    const where = 'url' in one ? { url: one.url } : { data: one.base64 };
    return { type: 'file', mimeType: one.type, ...where, ...(one.name && { metadata: { filename: one.name } }) };
  });
  if (content.length === 0) return [];
  return [{ id, role: message.role === 'user' ? 'user' : 'assistant', content }];
}

/** A call of a model that has begun. */
interface Call {
  readonly messages: readonly unknown[];
  /** What the provider was asked for: the model and its tools. */
  readonly params: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
  readonly started: number;
  firstToken?: number;
}

/** Reports the calls of models in a graph. */
class ModelCalls {
  /** Callbacks of LangChain. The node waits for them. */
  readonly callbacks = {
    awaitHandlers: true,
    raiseError: true,
    handleChatModelStart: this.#begin.bind(this),
    handleLLMNewToken: this.#token.bind(this),
    handleLLMEnd: this.#end.bind(this),
    handleLLMError: this.#failed.bind(this),
  };
  readonly #context: AgentContext;
  readonly #answered: (answers: ModelAnswers) => void;
  readonly #calls = new Map<string, Call>();
  #failure: unknown;

  /** `answered` handles the end of each call, before its node goes on, and throws where the answer is not whole. */
  constructor(context: AgentContext, answered: (answers: ModelAnswers) => void) {
    this.#context = context;
    this.#answered = answered;
  }

  #begin(
    _model: unknown,
    messages: readonly (readonly unknown[])[],
    id: string,
    _parent?: string,
    extra: Record<string, unknown> = {},
    _tags?: readonly string[],
    metadata: Record<string, unknown> = {},
  ): void {
    const params = isObject(extra.invocation_params) ? extra.invocation_params : {};
    this.#calls.set(id, { messages: messages.flat(), params, metadata, started: Date.now() });
  }

  /** The stream, whose error names what has failed where that is a call of a model. */
  async *named(stream: PromiseLike<AsyncIterable<unknown>>): AsyncGenerator<unknown> {
    try {
      yield* await stream;
    } catch (error) {
      throw (error === this.#failure && brokenConnection(error)) || error;
    }
  }

  #token(_token: string, _index: unknown, id: string): void {
    const call = this.#calls.get(id);
    if (call !== undefined) call.firstToken ??= Date.now();
  }

  #end(answers: ModelAnswers, id: string): void {
    try {
      this.#answered(answers);
    } catch (error) {
      this.#report(id, { error });
      throw error;
    }
    const all = answers.generations.flat();
    const [first] = all;
    const { usage_metadata: usage, response_metadata: meta = {} } = first?.message ?? {};
    const info = first?.generationInfo ?? {};
    const answered = [meta.model_name, meta.model, info.model_name].find((one) => typeof one === 'string');
    const reason = reasonOf(first?.message, info);
    this.#report(id, {
      output: modelMessages(all.map(({ message }) => message)),
      input_tokens: usage?.input_tokens,
      output_tokens: usage?.output_tokens,
      ...(typeof first?.message?.id === 'string' && { response_id: first.message.id }),
      ...(answered !== undefined && { response_model: answered }),
      ...(typeof reason === 'string' && { finish_reasons: [reason] }),
    });
  }

  #failed(error: unknown, id: string): void {
    this.#failure = error;
    if (!this.#context.signal.aborted) this.#report(id, { error });
    this.#calls.delete(id);
  }

  #report(id: string, how: object): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const { messages, params, metadata, started, firstToken } = call;
    const { ls_model_name, ls_provider } = metadata;
    const model = [params.model, params.model_name, ls_model_name].find((one) => typeof one === 'string');
    this.#context.modelCall({
      model: String(model ?? 'unknown'),
      ...(typeof ls_provider === 'string' && { provider: ls_provider }),
      started,
      firstToken,
      input: modelMessages(messages),
      tools: modelTools(Array.isArray(params.tools) ? params.tools : []),
      ...how,
    });
  }
}
