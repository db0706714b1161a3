import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { messageOf } from '../core/json.ts';

/** A token, a call of a tool, or an end other than the usual one; `broken` has no mark, and is the last. */
export type FakeDelta =
  | string
  | { readonly tool: string; readonly input: unknown }
  | { readonly end: 'length' | 'content_filter' | 'broken' };

/** The answer to a request: a text, which is streamed word by word, a list of deltas, or an error. */
export type FakeAnswer =
  | string
  | Iterable<FakeDelta>
  | AsyncIterable<FakeDelta>
  | { readonly status: number; readonly message: string }
  /** A page, as a proxy may answer. */
  | { readonly html: string };

/** A message, as the model got it. */
export interface FakeModelMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

export interface FakeModelRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly model: string;
    readonly messages: readonly FakeModelMessage[];
    readonly tools?: readonly { readonly type: string; readonly function: { readonly name: string } }[];
    readonly stream?: boolean;
    readonly stream_options?: { readonly include_usage?: boolean };
    readonly [field: string]: unknown;
  };
  /** Resolves when the connection is closed: true if the client closed it before the end. */
  readonly closed: Promise<boolean>;
}

export interface FakeModel {
  /** The value for `OPENAI_BASE_URL`, or the `baseURL` of a client. */
  readonly url: string;
  /** All requests so far. */
  readonly requests: readonly FakeModelRequest[];
  close(): Promise<void>;
}

/**
 * A model with a script, for tests: a server on this computer with OpenAI's chat completions. A list has an answer for each
 * request, in their order; a function is asked for each. Usage counts one for each token and each message.
 */
export async function fakeModel(
  script: readonly FakeAnswer[] | ((request: FakeModelRequest) => FakeAnswer),
): Promise<FakeModel> {
  const requests: FakeModelRequest[] = [];
  const answerTo = typeof script === 'function' ? script : () => next(script, requests.length);
  const server = createServer(async (incoming, response) => {
    if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions') {
      return refuse(response, 404, `There is no ${incoming.method} ${incoming.url}.`);
    }
    const closed = once(response, 'close').then(() => !response.writableFinished);
    try {
      // The client under test sends a body of this type.
      const body = (await json(incoming)) as FakeModelRequest['body'];
      const request = { headers: incoming.headers, body, closed };
      requests.push(request);
      const answer = answerTo(request);
      if (typeof answer === 'string') return await send(response, request, answer.match(/\S+\s*|\s+/g) ?? []);
      if ('html' in answer) return void response.writeHead(200, { 'content-type': 'text/html' }).end(answer.html);
      if ('status' in answer) return refuse(response, answer.status, answer.message);
      await send(response, request, answer);
    } catch (error) {
      // A script that throws, or a body that is no JSON.
      if (response.headersSent) response.destroy();
      else refuse(response, 400, `The fake model failed: ${messageOf(error)}`);
    }
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

/** Clients do not repeat a request that is answered with 400. */
const next = (answers: readonly FakeAnswer[], count: number): FakeAnswer =>
  answers[count - 1] ?? {
    status: 400,
    message: `The fake model has ${answers.length} answers, and this is request ${count}; give it another answer.`,
  };

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }));
}

const usageOf = ({ messages }: FakeModelRequest['body'], completion_tokens: number) => ({
  prompt_tokens: messages.length,
  completion_tokens,
  total_tokens: messages.length + completion_tokens,
});

/** Sends an answer: delta by delta to a request with `stream`, and as a whole to any other one. */
async function send(
  response: ServerResponse,
  { body }: FakeModelRequest,
  deltas: Iterable<FakeDelta> | AsyncIterable<FakeDelta>,
): Promise<void> {
  const isStream = body.stream === true;
  const base = { id: 'chatcmpl-1', created: 0, model: body.model };
  const write = (more: object): void => {
    const chunk = { ...base, object: 'chat.completion.chunk', ...more };
    if (isStream) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const choose = (delta: object, finish_reason: string | null = null): void =>
    write({ choices: [{ index: 0, delta, finish_reason }] });

  if (isStream) response.writeHead(200, { 'content-type': 'text/event-stream' });
  choose({ role: 'assistant', content: '' });
  let content = '';
  let tokens = 0;
  let end: string | undefined;
  const tool_calls: object[] = [];
  for await (const delta of deltas) {
    if (response.destroyed) return;
    if (typeof delta === 'object' && 'end' in delta) {
      end = delta.end;
      continue;
    }
    tokens += 1;
    if (typeof delta === 'string') {
      content += delta;
      choose({ content: delta });
    } else {
      for (const part of callInParts(delta, tool_calls.length)) choose({ tool_calls: [part] });
      tool_calls.push({ ...named(tool_calls.length), function: functionOf(delta) });
    }
  }
  if (end === 'broken') return void (isStream ? response.end() : response.destroy());
  const finish_reason = end ?? (tool_calls.length === 0 ? 'stop' : 'tool_calls');
  const usage = usageOf(body, tokens);
  if (isStream) {
    choose({}, finish_reason);
    if (body.stream_options?.include_usage) write({ choices: [], usage });
    return void response.end('data: [DONE]\n\n');
  }
  const message = { role: 'assistant', content, ...(tool_calls.length > 0 && { tool_calls }) };
  const choices = [{ index: 0, message, finish_reason }];
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ ...base, object: 'chat.completion', choices, usage }));
}

interface Called {
  readonly tool: string;
  readonly input: unknown;
}

const named = (index: number) => ({ id: `call_${index}`, type: 'function' });

const functionOf = ({ tool, input }: Called) => ({
  name: tool,
  arguments: typeof input === 'string' ? input : JSON.stringify(input),
});

/** A tool call as servers stream it: first its name, then its arguments in pieces. */
function callInParts(call: Called, index: number): object[] {
  const { name, arguments: text } = functionOf(call);
  const middle = Math.floor(text.length / 2);
  return [
    { index, ...named(index), function: { name, arguments: '' } },
    { index, function: { arguments: text.slice(0, middle) } },
    { index, function: { arguments: text.slice(middle) } },
  ];
}
