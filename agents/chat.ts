import OpenAI from 'openai';
import { AgentError, defineAgent, type Message, type MessagePart, textOf, trajectory } from 'rivulet';
import { concatMap, concatWith, EMPTY, from, map, Observable, of, switchMap, toArray } from 'rxjs';
import { calculate, calculator } from './_calculate.ts';
import { findModel, localOllama, type Missing, type Model } from './_model.ts';

const maxRounds = 8;

/** What the manifest says of the model: it is the first that a user reads. */
const descriptionFor = (found: Model | Missing): string =>
  'missing' in found ? `Not ready. ${found.missing}` : `Talks with ${found.name} at ${found.place}, and can calculate.`;

/**
 * Sends the session to a language model, and streams its answer token by token. The description says whether there is
 * a model. It is looked for again in each run, because Ollama may have been started meanwhile.
 */
export const createChat = async (ollama = localOllama) =>
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
        map(toChat),
        toArray(),
        // A step: after a crash or a deploy, the answer so far is in the journal, and the model continues from there.
        switchMap((messages) =>
          context.step(
            'answer',
            () => answerOfModel(ollama, messages, context.signal),
            (before) => answerOfModel(ollama, [...messages, ...continuation(before)], context.signal),
          ),
        ),
        concatMap((output) => {
          if (typeof output === 'string' || !('tokens' in output)) return of(output);
          context.usage(output);
          return EMPTY;
        }),
      ),
    { durable: true },
  );

export default await createChat();

/** A token, a tool call, or the number of tokens used. */
type Answer = string | MessagePart | { tokens: number };

/** Messages that let the model continue an interrupted answer. */
function continuation(before: readonly Answer[]): OpenAI.ChatCompletionMessageParam[] {
  const content = before.filter((item) => typeof item === 'string').join('');
  return content === ''
    ? []
    : [
        { role: 'assistant', content },
        { role: 'user', content: 'You were cut off. Go on exactly where you stopped, and repeat nothing.' },
      ];
}

const answerOfModel = (
  ollama: string,
  messages: OpenAI.ChatCompletionMessageParam[],
  signal: AbortSignal,
): Observable<Answer> =>
  from(findModel(process.env, ollama)).pipe(
    switchMap((found) => {
      if ('missing' in found) throw new AgentError('llm_unreachable', found.missing);
      return answer(found, messages, signal);
    }),
  );

/** Cold: subscribing sends the request, unsubscribing aborts it. */
function answer(
  { baseURL, apiKey, name }: Model,
  messages: OpenAI.ChatCompletionMessageParam[],
  signal: AbortSignal,
): Observable<Answer> {
  return new Observable((subscriber) => {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    const tool = async (args: string): Promise<unknown> => {
      const { input: tool_input, output: tool_output } = await calculate(args);
      subscriber.next(trajectory({ message: 'Calculated.', tool_name: calculator.name, tool_input, tool_output }));
      return tool_output;
    };
    const runner = client.chat.completions
      .runTools(
        {
          model: name,
          messages,
          stream: true,
          stream_options: { include_usage: true },
          tools: [{ type: 'function', function: { ...calculator, function: tool } }],
        },
        { signal, maxChatCompletions: maxRounds },
      )
      .on('content', (token) => subscriber.next(token))
      .on('chatCompletion', ({ usage }) => usage && subscriber.next({ tokens: usage.total_tokens }));
    runner.done().then(
      () => {
        // The runner stops silently after its last round, even if the model has called a tool.
        if (runner.messages.at(-1)?.role !== 'tool') return subscriber.complete();
        subscriber.error(
          new AgentError('llm_error', `The model asked for tools ${maxRounds} times and gave no answer.`),
        );
      },
      (error) => subscriber.error(explain(error, baseURL)),
    );
    return () => runner.abort();
  });
}

function toChat(message: Message): OpenAI.ChatCompletionMessageParam {
  const content = textOf(message);
  if (message.role !== 'user') return { role: 'assistant', content };
  const images = message.parts.flatMap(imageOf);
  return { role: 'user', content: images.length === 0 ? content : [{ type: 'text', text: content }, ...images] };
}

function imageOf({
  content_type = '',
  content,
  content_encoding,
}: MessagePart): OpenAI.ChatCompletionContentPartImage[] {
  if (!/^image\//i.test(content_type) || content === undefined || content_encoding !== 'base64') return [];
  return [{ type: 'image_url', image_url: { url: `data:${content_type};base64,${content}` } }];
}

function explain(error: unknown, url: string): AgentError {
  if (error instanceof OpenAI.APIConnectionError) {
    return new AgentError(
      'llm_unreachable',
      `No LLM answers at ${url}: start Ollama there or set OPENAI_BASE_URL, and OPENAI_API_KEY and OPENAI_MODEL as that server wants them.`,
    );
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new AgentError('llm_error', `The LLM at ${url} failed: ${reason}`);
}
