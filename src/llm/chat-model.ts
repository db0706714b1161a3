import type OpenAI from 'openai';
import { defer, from, Observable, switchMap } from 'rxjs';
import type { AgentContext } from '../core/agent.ts';
import type { CutOff } from '../core/cut-off.ts';
import { AgentError, errorOf } from '../core/errors.ts';
import { brokenConnection } from '../core/model-errors.ts';
import { modelMessages, modelTools } from '../core/model-messages.ts';
import type { RunUsage } from '../schema/run.ts';
import type { ChatMessage } from './chat-messages.ts';

/** A model of a server with OpenAI's chat completions. */
export interface ChatModelOptions {
  /** Such as `gpt-5-mini` or `llama3.2`. */
  readonly model: string;
  /** Default: the variable `OPENAI_BASE_URL`, or OpenAI's own server. */
  readonly baseURL?: string;
  /** Default: the variable `OPENAI_API_KEY`, or `none`. */
  readonly apiKey?: string;
  /** Further fields of each request, such as `temperature`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

/** What a model is asked. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly OpenAI.ChatCompletionFunctionTool[];
}

/** A call of a tool by a model; `args` is JSON, if the model made no mistake. */
export interface ChatCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

/** How a model's answer ends. An answer that was cut off has no calls: their arguments may be half. */
export interface ChatEnd {
  readonly calls: readonly ChatCall[];
  readonly usage?: RunUsage | undefined;
  readonly cutOff?: CutOff;
}

/**
 * Asks a model when subscribed to, and emits its tokens, and then how its answer ends. Unsubscribing aborts the request. Each
 * request is reported with `context.modelCall`, so in a durable run it belongs into the work of a step.
 * Fails with `llm_error` where the server refuses, or the answer has no end mark; with `llm_unreachable` where none answers;
 * with `package_missing` without the package `openai`.
 */
export type ChatModel = (request: ChatRequest, context: AgentContext) => Observable<string | ChatEnd>;

/** `options`: the model, or a function that finds it before each request. */
export function chatModel(
  options: ChatModelOptions | ((context: AgentContext) => ChatModelOptions | Promise<ChatModelOptions>),
): ChatModel {
  const found = async (context: AgentContext) => (typeof options === 'function' ? options(context) : options);
  return (request, context) =>
    defer(() => Promise.all([openai(context), found(context)])).pipe(
      switchMap(([{ OpenAI: Client }, model]) => answer(Client, model, request, context)),
    );
}

/** The package is imported in the first run: its 150 files would delay the start of a server. */
async function openai({ log }: AgentContext): Promise<typeof import('openai')> {
  try {
    return await import('openai');
  } catch (error) {
    log.error(String(error));
    throw new AgentError('package_missing', 'The package openai does not load; install it with "npm install openai".');
  }
}

function answer(
  Client: typeof OpenAI,
  { model, baseURL = process.env.OPENAI_BASE_URL, apiKey = process.env.OPENAI_API_KEY, request }: ChatModelOptions,
  { messages, tools = [] }: ChatRequest,
  context: AgentContext,
): Observable<string | ChatEnd> {
  return new Observable((subscriber) => {
    const client = new Client({ ...(baseURL && { baseURL }), apiKey: apiKey || 'none', maxRetries: 0 });
    const started = Date.now();
    let firstToken: number | undefined;
    const report = (how: object): void =>
      context.modelCall({
        model,
        provider: new URL(client.baseURL).host,
        started,
        firstToken,
        input: modelMessages(messages),
        tools: modelTools(tools),
        ...how,
      });
    const stream = client.chat.completions
      .stream({
        ...request,
        model,
        messages: [...messages],
        stream_options: { include_usage: true },
        ...(tools.length > 0 && { tools: [...tools] }),
      })
      .on('content', (token) => {
        firstToken ??= Date.now();
        subscriber.next(token);
      });
    const ended = (completion: OpenAI.ChatCompletion): void => {
      const end = endOf(completion);
      const { choices, id, model: response_model } = completion;
      const { content = '', tool_calls = [] } = choices[0]?.message ?? {};
      report({
        output: modelMessages([{ role: 'assistant', content, tool_calls }]),
        input_tokens: end.usage?.input_tokens,
        output_tokens: end.usage?.output_tokens,
        response_id: id,
        response_model,
        finish_reasons: [choices[0]?.finish_reason ?? 'unknown'],
      });
      subscriber.next(end);
      subscriber.complete();
    };
    const failed = (error: unknown): void => {
      report({ error });
      const isUnreachable = error instanceof Client.APIConnectionError;
      subscriber.error(
        isUnreachable ? unreachable(client.baseURL) : (brokenConnection(error) ?? refused(error, client.baseURL)),
      );
    };
    from(stream.finalChatCompletion()).subscribe({ next: ended, error: failed });
    return () => stream.abort();
  });
}

function endOf({ choices: [choice], usage }: OpenAI.ChatCompletion): ChatEnd {
  const used = usage && {
    tokens: usage.total_tokens,
    input_tokens: usage.prompt_tokens,
    output_tokens: usage.completion_tokens,
  };
  const reason = choice?.finish_reason;
  if (reason === 'length' || reason === 'content_filter') return { calls: [], usage: used, cutOff: reason };
  const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function' ? [{ id: call.id, name: call.function.name, args: call.function.arguments }] : [],
  );
  return { calls, usage: used };
}

const unreachable = (url: string): AgentError =>
  new AgentError(
    'llm_unreachable',
    `No LLM answers at ${url}: start Ollama there or set OPENAI_BASE_URL, and OPENAI_API_KEY and OPENAI_MODEL as that server wants them.`,
  );

const refused = (error: unknown, url: string): AgentError =>
  new AgentError('llm_error', `The LLM at ${url} failed: ${errorOf(error).message}`);
