import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOpenAI } from '@ai-sdk/openai';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIChatCompletionsModel } from '@openai/agents';
import { streamText } from 'ai';
import OpenAI from 'openai';
import type { AgentFunction } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { langGraphAgent } from 'rivulet/adapters/langgraph';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../src/core/agent.ts';
import { type Answer, type Llm, startLlm } from '../agents/llm.ts';
import { serve } from './chat-agent.ts';

const apiKey = 'key-of-the-test';
const model = 'model-of-the-test';

/** Each library with its own client of a server with OpenAI's interface. */
const libraries: Readonly<Record<string, (baseURL: string) => AgentFunction>> = {
  'the AI SDK': (baseURL) =>
    aiSdkAgent((messages, { signal }) =>
      streamText({
        model: createOpenAI({ baseURL, apiKey }).chat(model),
        messages,
        abortSignal: signal,
        maxRetries: 0,
        onError: () => {},
      }),
    ),
  'the OpenAI Agents SDK': (baseURL) =>
    openAiAgent(
      new Agent({
        name: 'writer',
        model: new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), model),
      }),
    ),
  LangGraph: (baseURL) =>
    langGraphAgent(
      createReactAgent({
        llm: new ChatOpenAI({ model, apiKey, configuration: { baseURL }, maxRetries: 0 }),
        tools: [],
      }),
    ),
};

async function llmThat(answer: () => Answer): Promise<Llm> {
  const llm = await startLlm(answer);
  onTestFinished(() => llm.close());
  return llm;
}

describe.each(Object.keys(libraries))('an answer of a model through %s', (name) => {
  const agentFor = ({ url }: Llm) => serve(libraries[name]?.(url) ?? (() => []));

  it.each(['length', 'content_filter'] as const)('that ends with `%s` says so', async (end) => {
    const { run } = await runAgent(agentFor(await llmThat(() => ['Once ', 'upon ', { end }])), 'Tell');
    expect(run.error).toBeUndefined();
    expect(run.output).toMatchObject([{ parts: [{ content: 'Once upon ' }], finish_reason: end }]);
  });

  it('tells the next turn that it was cut off', async () => {
    let turns = 0;
    const llm = await llmThat(() => (turns++ === 0 ? ['Once ', { end: 'length' }] : ['Fine.']));
    const { output } = (await runAgent(agentFor(llm), 'Tell')).run;
    await runAgent(agentFor(llm), 'Go on', {
      history: [{ role: 'user', parts: [{ content_type: 'text/plain', content: 'Tell' }] }, ...output],
    });
    const [, answer] = llm.requests[1]?.body.messages ?? [];
    expect(answer?.role).toBe('assistant');
    expect(JSON.stringify(answer?.content)).toContain('This answer was cut off: it came to the limit of tokens.');
  });

  it('that has no end mark fails the run', async () => {
    const { run } = await runAgent(agentFor(await llmThat(() => ['Once ', 'upon ', { end: 'broken' }])), 'Tell');
    expect([run.status, run.error?.data?.code]).toEqual(['failed', 'llm_error']);
  });

  it.each([false, true])('whose connection breaks says so, and why (durable: %s)', async (durable) => {
    const lines: string[] = [];
    const log = { ...silentLog, warn: (line: string) => void lines.push(line) };
    const agent = serve(libraries[name]?.(await startBreaking()) ?? (() => []), { durable });
    const { run, text } = await runAgent(agent, 'Tell', { log });
    expect([run.status, text]).toEqual(['failed', 'Once ']);
    expect(run.error).toEqual({
      code: 'server_error',
      message: 'The connection to the model broke before the end of its answer: other side closed.',
      data: { code: 'llm_error' },
    });
    expect(lines.join()).toContain('TypeError: terminated');
  });

  it('that is a page fails the run', async () => {
    const { run } = await runAgent(agentFor(await llmThat(() => ({ html: '<html>Sign in</html>' }))), 'Tell');
    expect(run.status).toBe('failed');
  });
});

const chunk = (delta: object, finish_reason: string | null = null): string => {
  const choices = [{ index: 0, delta, finish_reason }];
  return `data: ${JSON.stringify({ id: 'answer', object: 'chat.completion.chunk', created: 1, model, choices })}\n\n`;
};

async function listening(server: Server): Promise<string> {
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A model whose server closes the connection after the first word. */
const startBreaking = (): Promise<string> =>
  listening(
    createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk({ role: 'assistant', content: 'Once ' }), () => response.socket?.end());
    }),
  );

/** A model that is cut off in the arguments of the second of its two calls. */
function startHalfCall(): Promise<string> {
  const call = (index: number, text: string) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name: 'remove', arguments: text },
  });
  const calls = [call(0, '{"path":"/srv/old"}'), call(1, '{"path":"/srv')];
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(
      `${chunk({ role: 'assistant', content: null, tool_calls: calls }, null)}${chunk({}, 'length')}data: [DONE]\n\n`,
    );
  });
  return listening(server);
}

it('executes no call of LangGraph whose arguments were cut off', async () => {
  const removed: string[] = [];
  const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } as const;
  const remove = tool(({ path }: { path: string }) => removed.push(path), {
    name: 'remove',
    description: 'Removes a folder.',
    schema,
    returnDirect: true,
  });
  const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL: await startHalfCall() }, maxRetries: 0 });
  await runAgent(serve(langGraphAgent(createReactAgent({ llm, tools: [remove] }))), 'Clean up');
  expect(removed).toEqual(['/srv/old']);
});
