import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type OpenAI from 'openai';

/** A token, a call of a tool, or an end other than the usual one; `broken` has no mark, and is the last. */
type Delta =
  | string
  | { readonly tool: string; readonly input: unknown }
  | { readonly end: 'length' | 'content_filter' | 'broken' };

/** The response to a request: deltas, or an error. */
export type Answer =
  | Iterable<Delta>
  | AsyncIterable<Delta>
  | { readonly status: number; readonly message: string }
  /** A page, as a proxy may answer. */
  | { readonly html: string };

export interface LlmRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: OpenAI.ChatCompletionCreateParamsStreaming;
  /** Resolves when the connection is closed: true if the client closed it before the end. */
  readonly closed: Promise<boolean>;
}

export interface Llm {
  /** The value for OPENAI_BASE_URL. */
  readonly url: string;
  /** All requests so far. */
  readonly requests: readonly LlmRequest[];
  close(): Promise<void>;
}

/**
 * A scripted language model: an HTTP server with OpenAI's streaming chat completions. Usage counts one for each token and
 * each message.
 */
export async function startLlm(script: (request: LlmRequest) => Answer): Promise<Llm> {
  const requests: LlmRequest[] = [];
  const server = createServer(async (incoming, response) => {
    if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions') {
      return refuse(response, 404, `There is no ${incoming.method} ${incoming.url}.`);
    }
    const closed = once(response, 'close').then(() => !response.writableFinished);
    // The type is that of the client under test.
    const body = (await json(incoming)) as OpenAI.ChatCompletionCreateParamsStreaming;
    const request = { headers: incoming.headers, body, closed };
    requests.push(request);
    const answer = script(request);
    if ('html' in answer) return void response.writeHead(200, { 'content-type': 'text/html' }).end(answer.html);
    if ('status' in answer) return refuse(response, answer.status, answer.message);
    await stream(response, request, answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the model has no port');
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }));
}

async function stream(
  response: ServerResponse,
  { body }: LlmRequest,
  deltas: Iterable<Delta> | AsyncIterable<Delta>,
): Promise<void> {
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: body.model };
  const send = (more: object): boolean => response.write(`data: ${JSON.stringify({ ...base, ...more })}\n\n`);
  const choose = (delta: object, finish_reason: string | null = null): boolean =>
    send({ choices: [{ index: 0, delta, finish_reason }] });

  response.writeHead(200, { 'content-type': 'text/event-stream' });
  choose({ role: 'assistant', content: '' });
  let tokens = 0;
  let calls = 0;
  let end: string | undefined;
  for await (const delta of deltas) {
    if (response.destroyed) return;
    if (typeof delta === 'object' && 'end' in delta) {
      end = delta.end;
      continue;
    }
    tokens += 1;
    if (typeof delta === 'string') choose({ content: delta });
    else for (const part of callInParts(delta, calls++)) choose({ tool_calls: [part] });
  }
  if (end === 'broken') return void response.end();
  choose({}, end ?? (calls === 0 ? 'stop' : 'tool_calls'));
  if (body.stream_options?.include_usage) {
    const prompt_tokens = body.messages.length;
    send({ choices: [], usage: { prompt_tokens, completion_tokens: tokens, total_tokens: prompt_tokens + tokens } });
  }
  response.end('data: [DONE]\n\n');
}

/** A tool call as servers stream it: first its name, then its arguments in pieces. */
function callInParts({ tool, input }: { tool: string; input: unknown }, index: number): object[] {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  const middle = Math.floor(text.length / 2);
  return [
    { index, id: `call_${index}`, type: 'function', function: { name: tool, arguments: '' } },
    { index, function: { arguments: text.slice(0, middle) } },
    { index, function: { arguments: text.slice(middle) } },
  ];
}
