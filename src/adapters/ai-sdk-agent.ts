import { isObject } from '../core/json.ts';
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
 * The same agent, as the adapter needs it. Its tools wait until their calls are durable: the SDK starts them at once, and after
 * a crash the journal would not have the call. It writes no error to the console, because the run fails with it. It keeps the bodies
 * of requests for reports. Its stream has the usage of a model call as soon as that is known: by itself, the SDK tells it
 * after the tools of the call. Another agent than a `ToolLoopAgent`, or one of a class of its own, stays as it is.
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
