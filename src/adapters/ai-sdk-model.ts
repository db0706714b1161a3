import type { ModelMessage, TextStreamPart, ToolSet } from 'ai';
import type { AgentContext } from '../core/agent.ts';
import { isObject } from '../core/json.ts';
import type { ModelCallReport } from '../core/model-call.ts';
import { modelMessages, modelRequest, modelTools } from '../core/model-messages.ts';
import type * as Schema from '../schema/diagnostic.ts';
import { usageOf } from './conversation.ts';

/** What a raw chunk of the stream has, where it is the adapter's: the usage of a call whose tools may still run. */
const mark = 'rivulet:usage';

type Settings = Record<string, unknown>;

/** The settings of a `ToolLoopAgent`. Its types do not have the field. Any other agent has no known settings. */
export const settingsOf = (agent: object): Settings => {
  const settings: unknown = Reflect.get(agent, 'settings');
  return isObject(settings) ? settings : {};
};

/** Resolves when the call of a tool is durable. */
export type WhenCalled = (toolCallId: string) => Promise<void>;

/**
 * A copy of a `ToolLoopAgent` with what the adapter needs. Other agents stay as they are. So do agents of a
 * class that is derived from it.
 *
 * - A tool waits until its call is durable. The SDK starts tools at once, and after a crash the journal would not have the call.
 * - The usage of a model call comes when the model has answered. The SDK tells it only after the tools of the call.
 * - Requests keep their bodies, for reports. Errors are not written to the console, because the run fails with them.
 */
export function prepared<A extends object>(agent: A, whenCalled: WhenCalled): A {
  const settings = settingsOf(agent);
  const { constructor: type } = agent;
  if (type.name !== 'ToolLoopAgent' || !('model' in settings)) return agent;
  const include = isObject(settings.include) ? settings.include : {};
  const wantsChunks = settings.includeRawChunks === true || include.rawChunks === true;
  const { model } = settings;
  const isModel = isObject(model) && typeof model.doStream === 'function';
  const made: unknown = Reflect.construct(type, [
    {
      ...settings,
      onError: settings.onError ?? (() => undefined),
      ...(isObject(settings.tools) && { tools: waiting(settings.tools, whenCalled) }),
      include: { requestBody: true, ...include },
      ...(isModel && !wantsChunks && { model: telling(model), includeRawChunks: true }),
    },
  ]);
  // The constructor of the agent has made it.
  return made as A;
}

function waiting(tools: Settings, whenCalled: WhenCalled): Settings {
  const entries = Object.entries(tools).map(([name, tool]) => {
    if (!isObject(tool) || typeof tool.execute !== 'function') return [name, tool];
    const execute = async (input: unknown, options: { readonly toolCallId: string }): Promise<unknown> => {
      await whenCalled(options.toolCallId);
      return resultOf(tool, input, options);
    };
    return [name, { ...tool, execute }];
  });
  return Object.fromEntries(entries);
}

/** Executes a tool. One may give several values, of which the last is the result, and those before are preliminary. */
export async function resultOf(tool: Settings, input: unknown, options: object): Promise<unknown> {
  if (typeof tool.execute !== 'function') return undefined;
  const executed: unknown = await tool.execute(input, options);
  if (!isAsyncIterable(executed)) return executed;
  let last: unknown;
  for await (const value of executed) last = value;
  return last;
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  isObject(value) && Symbol.asyncIterator in value;

/** The usage that a raw chunk of a prepared agent tells. */
export const usageIn = (chunk: unknown) =>
  isObject(chunk) && isObject(chunk[mark]) ? usageOf(chunk[mark].input, chunk[mark].output, undefined) : undefined;

/** A model whose stream tells the usage in a chunk that the SDK passes on at once. */
const telling = (model: Settings): Settings =>
  new Proxy(model, {
    get(target, name) {
      // A model may have fields that only itself can read.
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'doStream') return value.bind(target);
      return async (options: object) => {
        const answer = await value.call(target, { ...options, includeRawChunks: false });
        return { ...answer, stream: answer.stream.pipeThrough(new TransformStream({ transform: tell })) };
      };
    },
  });

function tell(chunk: unknown, controller: TransformStreamDefaultController<unknown>): void {
  if (isObject(chunk) && chunk.type === 'finish' && isObject(chunk.usage)) {
    const { inputTokens, outputTokens } = chunk.usage;
    controller.enqueue({
      type: 'raw',
      rawValue: { [mark]: { input: total(inputTokens), output: total(outputTokens) } },
    });
  }
  controller.enqueue(chunk);
}

/** Since version 3 of its interface, a provider tells the tokens in parts. */
const total = (tokens: unknown): unknown => (isObject(tokens) ? tokens.total : tokens);

type Part = TextStreamPart<ToolSet>;
type FinishStep = Extract<Part, { type: 'finish-step' }>;

/** What the adapter knows of the model's side. */
export interface Asked {
  /** The model of an agent. That of a function is not known before it answers. */
  readonly model?: unknown;
  readonly instructions?: unknown;
  readonly tools: object;
  readonly messages: readonly ModelMessage[];
}

/** Reports the calls of a model that one stream of the AI SDK makes, as far as the parts of the stream tell. */
export class ModelCalls {
  readonly #context: AgentContext;
  readonly #asked: Asked;
  /** What was said in the stream: a provider without a request's body was told this as well. */
  readonly #said: Schema.ModelMessage[] = [];
  /** When the last part came: the next call begins after it. */
  #last = Date.now();
  #call: Call | undefined;

  constructor(context: AgentContext, asked: Asked) {
    this.#context = context;
    this.#asked = asked;
  }

  read(part: Part): void {
    const now = Date.now();
    if (part.type === 'start-step') this.#call = new Call(this.#last, part.request.body);
    this.#call?.read(part, now);
    if (part.type === 'tool-result' && part.preliminary !== true) this.#result(part.toolCallId, part.output);
    if (part.type === 'tool-error') this.#result(part.toolCallId, part.error);
    if (part.type === 'finish-step') this.#end(part);
    this.#last = now;
  }

  /** The stream failed, and with it the call that was under way. A call that the provider refused has no part. */
  failed(error: unknown): void {
    if (this.#context.signal.aborted) return;
    this.#report(this.#call ?? new Call(this.#last, undefined), { ended: Date.now(), error });
  }

  #end({ response, usage, finishReason, rawFinishReason = finishReason }: FinishStep): void {
    const call = this.#call;
    if (call === undefined) return;
    this.#call = undefined;
    const { input_tokens, output_tokens } = usageOf(usage.inputTokens, usage.outputTokens, undefined);
    this.#report(call, {
      ended: call.ended,
      output: [call.message],
      input_tokens,
      output_tokens,
      response_id: response.id,
      response_model: response.modelId,
      finish_reasons: [rawFinishReason],
    });
    this.#said.push(call.message, ...call.results);
  }

  /** Results of tools that were approved come before the call. */
  #result(id: string, response: unknown): void {
    const results = this.#call?.results ?? this.#said;
    results.push(...modelMessages([{ role: 'tool', tool_call_id: id, content: response }]));
  }

  #report(call: Call, how: Partial<ModelCallReport>): void {
    const { model, instructions, tools, messages } = this.#asked;
    const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
    const request = modelRequest(call.request);
    const { modelId = model, provider } = isObject(model) ? model : {};
    const named = request?.model ?? (typeof modelId === 'string' ? modelId : how.response_model);
    this.#context.modelCall({
      model: named ?? 'unknown',
      ...(typeof provider === 'string' && { provider }),
      started: call.started,
      firstToken: call.firstToken,
      input: request?.input ?? [...modelMessages([...system, ...messages]), ...this.#said],
      tools: request?.tools ?? modelTools(Object.entries(tools).map(([name, tool]) => ({ ...tool, name }))),
      ...how,
    });
  }
}

/** One call of the model. */
class Call {
  readonly started: number;
  readonly request: unknown;
  firstToken: number | undefined;
  /** The step ends after its tools, and the call with the last part of the model's answer. */
  ended: number;
  readonly results: Schema.ModelMessage[] = [];
  readonly #parts: Schema.ModelPart[] = [];

  constructor(started: number, request: unknown) {
    this.started = started;
    this.request = request;
    this.ended = started;
  }

  get message(): Schema.ModelMessage {
    return { role: 'assistant', parts: this.#parts };
  }

  read(part: Part, now: number): void {
    if (!isOfModel(part)) return;
    this.ended = now;
    if (part.type !== 'start-step') this.firstToken ??= now;
    if (part.type === 'text-delta') this.#add('text', part.text);
    if (part.type === 'reasoning-delta') this.#add('reasoning', part.text);
    if (part.type === 'file') this.#parts.push({ type: 'blob', mime_type: part.file.mediaType });
    if (part.type !== 'tool-call') return;
    this.#parts.push(...modelMessages([{ role: 'assistant', content: [part] }]).flatMap(({ parts }) => parts));
  }

  #add(type: string, text: string): void {
    const last = this.#parts.at(-1);
    if (last?.type === type) last.content += text;
    else this.#parts.push({ type, content: text });
  }
}

const isOfModel = ({ type }: Part): boolean =>
  /^(start-step|text|reasoning|file|source|tool-call|tool-input)/.test(type);
