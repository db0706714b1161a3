import OpenAI from 'openai';
import { AgentError, defineAgent, type Message, type MessagePart, textOf, trajectory } from 'rivulet';
import { concatMap, concatWith, EMPTY, map, Observable, of, switchMap, toArray } from 'rxjs';
import { calculate, calculator } from './_calculate.ts';

const maxRounds = 8;

/** Sends the session to a language model, and streams its answer token by token. */
export default defineAgent(
  {
    name: 'chat',
    description: 'Talks with any language model behind an OpenAI-compatible server, and can calculate.',
    input_content_types: ['text/*', 'image/*'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'llm', 'tools'],
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
          () => answer(messages, context.signal),
          (before) => answer([...messages, ...continuation(before)], context.signal),
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

/** Cold: subscribing sends the request, unsubscribing aborts it. */
function answer(messages: OpenAI.ChatCompletionMessageParam[], signal: AbortSignal): Observable<Answer> {
  return new Observable((subscriber) => {
    const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL } = process.env;
    const baseURL = OPENAI_BASE_URL || 'http://127.0.0.1:11434/v1';
    const client = new OpenAI({ baseURL, apiKey: OPENAI_API_KEY || 'none', maxRetries: 0 });
    const tool = async (args: string): Promise<unknown> => {
      const { input: tool_input, output: tool_output } = await calculate(args);
      subscriber.next(trajectory({ message: 'Calculated.', tool_name: calculator.name, tool_input, tool_output }));
      return tool_output;
    };
    const runner = client.chat.completions
      .runTools(
        {
          model: OPENAI_MODEL || 'llama3.2',
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
