import { createOpenAI } from '@ai-sdk/openai';
import { OpenAIChatCompletionsModel, Agent as OpenAiAgent, tool as openAiTool } from '@openai/agents';
import { jsonSchema, ToolLoopAgent, tool } from 'ai';
import OpenAI from 'openai';
import type { AgentFunction } from 'rivulet';
import { aiSdkAgent } from 'rivulet/adapters/ai-sdk';
import { openAiAgent } from 'rivulet/adapters/openai-agents';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { follow, startEngine } from '../../src/testing/engine.ts';
import { startLlm } from '../agents/llm.ts';
import { serve } from './chat-agent.ts';

const apiKey = 'key-of-the-test';
const model = 'model-of-the-test';
const pay = ({ amount }: { amount: number }) => ({ paid: amount });

/** Each with a tool `pay`, which asks first. */
const libraries: Readonly<Record<string, (baseURL: string) => AgentFunction>> = {
  'the AI SDK': (baseURL) =>
    aiSdkAgent(
      new ToolLoopAgent({
        model: createOpenAI({ baseURL, apiKey }).chat(model),
        tools: {
          pay: tool({
            description: 'Pays.',
            inputSchema: jsonSchema<{ amount: number }>({ type: 'object', properties: { amount: { type: 'number' } } }),
            needsApproval: true,
            execute: pay,
          }),
        },
      }),
    ),
  'the OpenAI Agents SDK': (baseURL) =>
    openAiAgent(
      new OpenAiAgent({
        name: 'payer',
        model: new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), model),
        tools: [
          openAiTool({
            name: 'pay',
            description: 'Pays.',
            parameters: z.object({ amount: z.number() }),
            needsApproval: true,
            execute: pay,
          }),
        ],
      }),
    ),
};

describe.each(Object.keys(libraries))('the third turn of an agent of %s', (name) => {
  it.each([
    ['true', '{"paid":5}'],
    ['false', expect.stringMatching(/denied|not approved/)],
  ])(
    'has the call of the first one, and its result after the reply %s, and no question as chat',
    async (reply, result) => {
      const llm = await startLlm(({ body }) => {
        const last = body.messages.at(-1);
        if (last?.role === 'tool') return ['All right.'];
        return last?.content === 'Pay' || JSON.stringify(last?.content).includes('"Pay"')
          ? ['One moment. ', { tool: 'pay', input: { amount: 5 } }]
          : ['Fine.'];
      });
      onTestFinished(() => llm.close());
      const agent = serve(libraries[name]?.(llm.url) ?? (() => []));
      const engine = await startEngine([agent], new MemoryStore());
      const session_id = newId();
      const say = async (content: string, answers: string[] = []): Promise<void> => {
        const input = [{ role: 'user', parts: [{ content_type: 'text/plain', content }] }];
        const { run_id } = await engine.create({ agent_name: 'chat', input, session_id });
        const { run } = await follow(engine, run_id, answers);
        expect([run.status, run.error]).toEqual(['completed', undefined]);
      };
      await say('Pay', [reply]);
      await say('Thanks');
      await say('And now?');
      await engine.stop();
      const text = (content: unknown): unknown =>
        Array.isArray(content) ? content.map((part) => part.text).join('') : content;
      const { messages } = llm.requests.at(-1)?.body ?? { messages: [] };
      const id = expect.any(String);
      // The OpenAI Agents SDK 0.14 sends the text before a call as a message of its own.
      const all = messages.filter((one) => text(one.content) !== 'One moment. ' || 'tool_calls' in one);
      expect(all.map(({ role, content, ...more }) => ({ role, content: text(content), ...more }))).toMatchObject([
        { role: 'user', content: 'Pay' },
        {
          role: 'assistant',
          tool_calls: [{ id, type: 'function', function: { name: 'pay', arguments: '{"amount":5}' } }],
        },
        { role: 'tool', tool_call_id: id, content: result },
        { role: 'assistant', content: 'All right.' },
        { role: 'user', content: 'Thanks' },
        { role: 'assistant', content: 'Fine.' },
        { role: 'user', content: 'And now?' },
      ]);
      expect(JSON.stringify(messages)).not.toContain('May the tool');
    },
  );
});
