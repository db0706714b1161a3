import type OpenAI from 'openai';
import {
  type AgentContext,
  AgentError,
  type AgentOutput,
  cutOffNotes,
  cutOffOf,
  defineAgent,
  type MessagePart,
  type RunUsage,
  type Said,
  saidIn,
  textOf,
} from 'rivulet';
import { concat, concatMap, concatWith, defer, EMPTY, from, Observable, of, switchMap, toArray } from 'rxjs';
import { findModel, localOllama, type Missing, type Model } from './_model.ts';
import { ChatTools } from './_tools.ts';

const maxRounds = 8;

/** What the manifest says of the model: it is the first that a user reads. */
const descriptionFor = (found: Model | Missing): string =>
  'missing' in found ? `Not ready. ${found.missing}` : `Talks with ${found.name} at ${found.place}, and can calculate.`;

/**
 * Sends the session to a language model, and streams its answer token by token. The description says whether there is
 * a model. It is looked for again in each run, because Ollama may have been started meanwhile.
 */
export const createChat = async (ollama = localOllama, tools = new ChatTools()) =>
  defineAgent(
    {
      name: 'chat',
      description: descriptionFor(await findModel(process.env, ollama)),
      input_content_types: ['text/*', 'image/*'],
      output_content_types: ['text/plain'],
      metadata: {
        license: 'MIT',
        programming_language: 'TypeScript',
        tags: ['example', 'llm', 'tools'],
        examples: ['Explain backpressure in three sentences', 'What is 17 % of 2,340?'],
        recommended_models: ['llama3.2'],
      },
    },
    (input, context) =>
      context.session.history.pipe(
        concatWith(input),
        toArray(),
        switchMap((messages) => converse({ ollama, tools, context }, saidIn(messages).flatMap(toChat))),
      ),
    { durable: true },
  );

export default await createChat(localOllama, await ChatTools.load(process.env));

interface Chat {
  readonly ollama: string;
  readonly tools: ChatTools;
  readonly context: AgentContext;
}

type ChatMessage = OpenAI.ChatCompletionMessageParam;

/** A token; or the calls of tools, the tokens used and why it is not whole, at the end of the model's answer. */
type Answer =
  | string
  | {
      readonly calls: readonly ToolCall[];
      readonly usage?: RunUsage | undefined;
      readonly cutOff?: 'length' | 'content_filter';
    };
interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

/** The answer of the model. Where it calls tools, their results, and then its next answer. */
function converse(chat: Chat, messages: readonly ChatMessage[], round = 1): Observable<AgentOutput> {
  const { context, tools } = chat;
  let content = '';
  let calls: readonly ToolCall[] = [];
  // A step: after a crash or a deploy, the answer so far is in the journal, and the model continues from there.
  const answer = context
    .step<Answer>(
      'answer',
      () => answerOfModel(chat, messages),
      (before) =>
        before.some((item) => typeof item !== 'string')
          ? EMPTY
          : answerOfModel(chat, [...messages, ...continuation(before)]),
    )
    .pipe(
      concatMap((item) => {
        if (typeof item === 'string') {
          content += item;
          return of(item);
        }
        calls = item.calls;
        if (item.usage !== undefined) context.usage(item.usage);
        return item.cutOff === undefined ? EMPTY : of({ role: 'agent', parts: [], finish_reason: item.cutOff });
      }),
    );
  const results: ChatMessage[] = [];
  const call = ({ id, name, args }: ToolCall): Observable<AgentOutput> =>
    tools.call(name, args, context).pipe(
      concatMap((said) => {
        if ('output' in said) return of(said.output);
        results.push({ role: 'tool', tool_call_id: id, content: said.result });
        return EMPTY;
      }),
    );
  const next = defer(() => {
    if (calls.length === 0) return EMPTY;
    if (round === maxRounds) {
      throw new AgentError('llm_error', `The model asked for tools ${maxRounds} times and gave no answer.`);
    }
    const tool_calls = calls.map(({ id, name, args }) => ({
      id,
      type: 'function' as const,
      function: { name, arguments: args },
    }));
    const said = { role: 'assistant' as const, content, tool_calls };
    return concat(
      from(calls).pipe(concatMap(call)),
      defer(() => converse(chat, [...messages, said, ...results], round + 1)),
    );
  });
  return concat(answer, next);
}

/** Messages that let the model continue an interrupted answer. */
function continuation(before: readonly Answer[]): ChatMessage[] {
  const content = before.filter((item) => typeof item === 'string').join('');
  return content === ''
    ? []
    : [
        { role: 'assistant', content },
        { role: 'user', content: 'You were cut off. Go on exactly where you stopped, and repeat nothing.' },
      ];
}

/** The client is imported in the first run: its 150 files would delay the start of the server. */
async function openai({ log }: AgentContext): Promise<typeof import('openai')> {
  try {
    return await import('openai');
  } catch (error) {
    log.error(String(error));
    throw new AgentError('package_missing', 'The package openai does not load; install it with "npm install openai".');
  }
}

const answerOfModel = ({ ollama, tools, context }: Chat, messages: readonly ChatMessage[]): Observable<Answer> =>
  defer(() => Promise.all([openai(context), findModel(process.env, ollama), tools.definitions(context)])).pipe(
    switchMap(([{ OpenAI }, found, definitions]) => {
      if ('missing' in found) throw new AgentError('llm_unreachable', found.missing);
      return answer(OpenAI, found, messages, definitions);
    }),
  );

/** Cold: subscribing sends the request, unsubscribing aborts it. */
function answer(
  Client: typeof OpenAI,
  { baseURL, apiKey, name }: Model,
  messages: readonly ChatMessage[],
  tools: OpenAI.ChatCompletionTool[],
): Observable<Answer> {
  return new Observable((subscriber) => {
    const client = new Client({ baseURL, apiKey, maxRetries: 0 });
    const stream = client.chat.completions
      .stream({ model: name, messages: [...messages], stream_options: { include_usage: true }, tools })
      .on('content', (token) => subscriber.next(token));
    stream.finalChatCompletion().then(
      ({ choices: [choice], usage }) => {
        const calls = (choice?.message.tool_calls ?? []).map((called) => {
          const { id, function: asked } = called;
          return { id, name: asked.name, args: asked.arguments };
        });
        const reason = choice?.finish_reason;
        // A call that was cut off has half of its arguments.
        if (reason === 'length' || reason === 'content_filter')
          subscriber.next({ calls: [], usage: usage && usageOf(usage), cutOff: reason });
        else subscriber.next({ calls, usage: usage && usageOf(usage) });
        subscriber.complete();
      },
      (error) => {
        const isUnreachable = error instanceof Client.APIConnectionError;
        subscriber.error(isUnreachable ? unreachable(baseURL) : failed(error, baseURL));
      },
    );
    return () => stream.abort();
  });
}

const usageOf = ({ total_tokens, prompt_tokens, completion_tokens }: OpenAI.CompletionUsage): RunUsage => ({
  tokens: total_tokens,
  input_tokens: prompt_tokens,
  output_tokens: completion_tokens,
});

function toChat({ role, parts, calls, message, ends }: Said): ChatMessage[] {
  const cutOff = ends ? cutOffOf(message) : undefined;
  const text = textOf({ role, parts: [...parts] });
  const content = cutOff === undefined ? text : `${text}\n\n[${cutOffNotes[cutOff]}]`;
  if (role === 'user') {
    const images = parts.flatMap(imageOf);
    return [{ role: 'user', content: images.length === 0 ? content : [{ type: 'text', text: content }, ...images] }];
  }
  if (calls.length === 0) return [{ role: 'assistant', content }];
  const tool_calls = calls.map(({ id, name, input }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(input) },
  }));
  const results = calls.map(({ id, result: { tool_output, tool_error } }) => ({
    role: 'tool' as const,
    tool_call_id: id,
    content: tool_error ?? JSON.stringify(tool_output ?? { error: 'It has no result: its run ended before.' }),
  }));
  return [{ role: 'assistant', content, tool_calls }, ...results];
}

function imageOf({
  content_type = '',
  content,
  content_encoding,
}: MessagePart): OpenAI.ChatCompletionContentPartImage[] {
  if (!/^image\//i.test(content_type) || content === undefined || content_encoding !== 'base64') return [];
  return [{ type: 'image_url', image_url: { url: `data:${content_type};base64,${content}` } }];
}

const unreachable = (url: string): AgentError =>
  new AgentError(
    'llm_unreachable',
    `No LLM answers at ${url}: start Ollama there or set OPENAI_BASE_URL, and OPENAI_API_KEY and OPENAI_MODEL as that server wants them.`,
  );

const failed = (error: unknown, url: string): AgentError =>
  new AgentError('llm_error', `The LLM at ${url} failed: ${error instanceof Error ? error.message : String(error)}`);
