import { createOpenAI } from '@ai-sdk/openai';
import { tool as langTool } from '@langchain/core/tools';
import { MemorySaver } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { OpenAIChatCompletionsModel, Agent as OpenAiAgent, tool as openAiTool, Runner } from '@openai/agents';
import { jsonSchema, streamText, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import OpenAI from 'openai';
import { type AgentFunction, createRuntime, type Diagnostic } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { langGraphAgent } from 'rivulet/adapters/langgraph';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { type Answer, startLlm } from '../agents/llm.ts';
import { serve } from './chat-agent.ts';

const apiKey = 'key-of-the-test';
const small = 'small';
const weather = ({ city }: { city: string }) => ({ city, degrees: 7 });
const text = { name: 'weather', description: 'Tells.' };
const instructions = 'Be brief.';

const aiTool = tool({
  description: 'Tells.',
  inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: weather,
});

/** Each with a tool `weather`. */
const libraries: Readonly<Record<string, (baseURL: string) => AgentFunction>> = {
  'a ToolLoopAgent': (baseURL) =>
    aiSdkAgent(
      new ToolLoopAgent({
        model: createOpenAI({ baseURL, apiKey }).chat(small),
        instructions,
        tools: { weather: aiTool },
      }),
    ),
  'a function that calls streamText': (baseURL) =>
    aiSdkAgent((messages, { signal }) =>
      streamText({
        model: createOpenAI({ baseURL, apiKey }).chat(small),
        system: instructions,
        messages,
        abortSignal: signal,
        tools: { weather: aiTool },
        stopWhen: ({ steps }) => steps.length > 3,
        maxRetries: 0,
        onError: () => undefined,
        // Version 7 has the request's body only where it is asked for; the option is not in the types of version 6.
        ...{ include: { requestBody: true } },
      }),
    ),
  'the OpenAI Agents SDK': (baseURL) =>
    openAiAgent(
      new OpenAiAgent({
        name: 'teller',
        instructions,
        model: new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), small),
        tools: [openAiTool({ ...text, parameters: z.object({ city: z.string() }), execute: weather })],
      }),
    ),
  LangGraph: (baseURL) =>
    langGraphAgent(
      createReactAgent({
        llm: new ChatOpenAI({ model: small, apiKey, configuration: { baseURL }, maxRetries: 0 }),
        prompt: instructions,
        tools: [langTool(weather, { ...text, schema: z.object({ city: z.string() }) })],
        checkpointer: new MemorySaver(),
      }),
    ),
};

async function callsOf(run: AgentFunction, durable = false): Promise<{ calls: readonly Diagnostic[]; status: string }> {
  const runtime = await createRuntime({ agents: [serve(run, { durable })], captureContent: true });
  onTestFinished(() => runtime.close());
  const { run_id, status } = await runtime.sync('chat', 'Oslo?');
  return { calls: (await runtime.diagnostics(run_id)).diagnostics, status };
}

const system = { role: 'system', parts: [{ type: 'text', content: instructions }] };
const asked = { role: 'user', parts: [{ type: 'text', content: 'Oslo?' }] };
const call = { type: 'tool_call', id: 'call_0', name: 'weather', arguments: { city: 'Oslo' } };
const told = { type: 'tool_call_response', id: 'call_0', response: { city: 'Oslo', degrees: 7 } };
const answered = { role: 'assistant', parts: [{ type: 'text', content: 'It is cold.' }] };

const teller = ({ messages }: { messages: readonly { role: string }[] }): Answer =>
  messages.at(-1)?.role === 'tool' ? ['It is ', 'cold.'] : [{ tool: 'weather', input: { city: 'Oslo' } }];

describe.each(Object.entries(libraries))('the model calls of %s', (name, library) => {
  it.each([false, true])('have what the model was given and what it answered, once (durable: %s)', async (durable) => {
    const llm = await startLlm(({ body }) => teller(body));
    onTestFinished(() => llm.close());
    const { calls, status } = await callsOf(library(llm.url), durable);
    expect(status).toBe('completed');
    const tools = [{ ...text, parameters: expect.objectContaining({ type: 'object' }) }];
    const common = {
      kind: 'model_call',
      agent_name: 'chat',
      request_model: small,
      response_model: small,
      response_id: expect.any(String),
      response_time_to_first_chunk: expect.any(Number),
      tool_definitions: tools,
    };
    expect(calls).toMatchObject([
      {
        ...common,
        response_finish_reasons: ['tool_calls'],
        input_messages: [system, asked],
        output_messages: [{ role: 'assistant', parts: [call] }],
        usage_input_tokens: 2,
        usage_output_tokens: 1,
      },
      {
        ...common,
        response_finish_reasons: ['stop'],
        input_messages: [system, asked, { role: 'assistant', parts: [call] }, { role: 'tool', parts: [told] }],
        output_messages: [answered],
        usage_input_tokens: 4,
        usage_output_tokens: 2,
      },
    ]);
    for (const one of calls) {
      if (one.kind !== 'model_call') continue;
      expect(Date.parse(one.ended_at)).toBeGreaterThanOrEqual(Date.parse(one.started_at));
      expect(one.error).toBeUndefined();
    }
  });

  it('have the error of a call that the provider refused, and of one that broke off', async () => {
    const dump = vi.spyOn(console, 'error').mockReturnValue(undefined);
    onTestFinished(() => dump.mockRestore());
    const answers: Answer[] = [{ status: 400, message: 'Too long.' }, ['Half', { end: 'broken' }]];
    const llm = await startLlm(() => answers.shift() ?? []);
    onTestFinished(() => llm.close());
    for (const error of [/Too long/, /broke off/]) {
      const { calls, status } = await callsOf(library(llm.url));
      expect(status).toBe('failed');
      expect(calls).toHaveLength(1);
      expect(calls[0]).toMatchObject({ error: expect.stringMatching(error), input_messages: expect.any(Array) });
    }
    // The log has the failed run. LangChain writes an error of a callback itself.
    if (name !== 'LangGraph') expect(dump).not.toHaveBeenCalled();
  });
});

describe('the model calls of the AI SDK', () => {
  it('have the messages of the SDK, where the provider tells no request', async () => {
    const usage = { inputTokens: { total: 3 }, outputTokens: { total: 2 } };
    const finish = (unified: string) => ({ type: 'finish', finishReason: { unified, raw: unified }, usage });
    const answers = [
      [
        { type: 'tool-call', toolCallId: 'call_0', toolName: 'weather', input: '{"city":"Oslo"}' },
        finish('tool-calls'),
      ],
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'It is cold.' },
        { type: 'text-end', id: 't' },
        finish('stop'),
      ],
    ];
    const doStream = async () => ({
      stream: new ReadableStream({
        start(controller) {
          for (const part of answers.shift() ?? []) controller.enqueue(part);
          controller.close();
        },
      }),
    });
    // The parts lack fields that the SDK does not read here.
    const model = new MockLanguageModelV3({ modelId: small, provider: 'mock', doStream: doStream as never });
    const { calls } = await callsOf(aiSdkAgent(new ToolLoopAgent({ model, instructions, tools: { weather: aiTool } })));
    expect(calls).toMatchObject([
      { request_model: small, provider_name: 'mock', input_messages: [system, asked] },
      {
        input_messages: [system, asked, { role: 'assistant', parts: [call] }, { role: 'tool', parts: [told] }],
        output_messages: [answered],
        tool_definitions: [{ name: 'weather', description: 'Tells.' }],
      },
    ]);
  });
});

describe('the model calls of the OpenAI Agents SDK', () => {
  it('have what a filter of the user’s own made of the messages', async () => {
    const llm = await startLlm(() => ['Fine.']);
    onTestFinished(() => llm.close());
    const model = new OpenAIChatCompletionsModel(new OpenAI({ baseURL: llm.url, apiKey, maxRetries: 0 }), small);
    const agent = new OpenAiAgent({ name: 'teller', model });
    const filter = vi.fn(({ modelData }) => ({ ...modelData, instructions: 'Say fine.' }));
    for (const options of [
      { options: () => ({ callModelInputFilter: filter }) },
      { runner: new Runner({ callModelInputFilter: filter, tracingDisabled: true }) },
    ]) {
      const { calls } = await callsOf(openAiAgent(agent, options));
      expect(calls).toMatchObject([{ input_messages: [{ role: 'system', parts: [{ content: 'Say fine.' }] }, asked] }]);
    }
    expect(filter).toHaveBeenCalledTimes(2);
  });
});
