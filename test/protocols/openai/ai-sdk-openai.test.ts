import { createOpenAI } from '@ai-sdk/openai';
import { generateText, type ModelMessage, streamText } from 'ai';
import { describe, expect, it } from 'vitest';
import { serveAll } from '../../support/serve.ts';
import { all } from './agents.ts';

const served = await serveAll(all, { docs: false, playground: false });
const provider = createOpenAI({ baseURL: `${served.url}/v1`, apiKey: 'none' });

describe('the provider for OpenAI of the AI SDK', () => {
  it('streams text, reasoning and sources by Responses', async () => {
    const { text, reasoningText, sources, toolCalls, finishReason } = streamText({
      model: provider('everything'),
      prompt: 'go',
    });
    expect(await text).toContain('Let me look. It is "there".\n');
    expect([await reasoningText, await finishReason]).toEqual(['It may be in the book.', 'stop']);
    expect(await sources).toMatchObject([{ url: 'https://example.com/book', title: 'Book' }]);
    expect((await toolCalls)[0]).toMatchObject({
      toolName: 'mcp.look',
      input: { where: 'book' },
      providerExecuted: true,
    });
  });

  it('refers to the items of earlier responses instead of repeating them', async () => {
    const bodies: string[] = [];
    const watched = createOpenAI({
      baseURL: `${served.url}/v1`,
      apiKey: 'none',
      fetch: (url, init) => {
        bodies.push(String(init?.body));
        return fetch(url, init);
      },
    });
    const messages: ModelMessage[] = [{ role: 'user', content: 'one' }];
    const first = await generateText({ model: watched('echo'), messages });
    messages.push(...first.response.messages, { role: 'user', content: 'two' });
    const { text } = await generateText({ model: watched('mirror'), messages });
    expect(bodies.at(-1)).toContain('"item_reference"');
    expect(JSON.parse(text).input.map(({ parts }: { parts: { content: string }[] }) => parts[0]?.content)).toEqual([
      'one',
      'one',
      'two',
    ]);
  });

  it('streams text by Chat Completions', async () => {
    const { text, usage } = streamText({ model: provider.chat('counted'), prompt: 'go' });
    expect(await text).toBe('counted');
    expect(await usage).toMatchObject({ inputTokens: 3, outputTokens: 4 });
  });
});
