import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner } from '@openai/agents';
import { generateText, streamText } from 'ai';
import { describe, expect, it } from 'vitest';
import { serveAll } from '../../support/serve.ts';
import { all } from './agents.ts';

// What clients make of a failed run is in docs/openai.md. The newest versions, of `npm run test:newest`, refuse half a text.
const isNewest = process.env.NEWEST_CLIENTS !== undefined;

const served = await serveAll(all, { docs: false, playground: false });

const baseURL = (): string => `${served.url}/v1`;

describe('a failed run, by Responses', () => {
  it('is an error with its message in @ai-sdk/openai, with a stream and without', async () => {
    const model = createOpenAI({ baseURL: baseURL(), apiKey: 'none' })('broken');
    await expect(generateText({ model, prompt: 'go', maxRetries: 0 })).rejects.toThrow('It broke.');
    const errors: unknown[] = [];
    const { finishReason } = streamText({
      model,
      prompt: 'go',
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    });
    expect(await finishReason).toBe('error');
    expect(errors).toMatchObject([{ message: 'It broke.' }]);
  });

  it('is the text so far in @ai-sdk/open-responses 1, and an error in 2; with a stream, the finish reason says that it failed', async () => {
    const model = createOpenResponses({ name: 'rivulet', url: `${baseURL()}/responses` })('broken');
    const whole = generateText({ model, prompt: 'go', maxRetries: 0 });
    if (isNewest) await expect(whole).rejects.toThrow('It broke.');
    else expect((await whole).text).toBe('half ');
    expect(await streamText({ model, prompt: 'go' }).finishReason).toBe('error');
  });

  it('is an error in @langchain/openai without a stream; with one, the text so far', async () => {
    const fields = { model: 'broken', apiKey: 'none', configuration: { baseURL: baseURL() }, maxRetries: 0 };
    const model = new ChatOpenAI({ ...fields, useResponsesApi: true });
    await expect(model.invoke('go')).rejects.toThrow('It broke.');
    let text = '';
    for await (const chunk of await model.stream('go')) text += chunk.text;
    expect(text).toBe('half ');
    const completions = new ChatOpenAI(fields);
    await expect(completions.invoke('go')).rejects.toThrow('It broke.');
    const read = async () => {
      for await (const { text: more } of await completions.stream('go')) text += more;
    };
    await expect(read()).rejects.toThrow('It broke.');
  });

  it('is the text so far in @openai/agents 0.14, and an error in 0.20 and by Chat Completions', async () => {
    const runnerOf = (useResponses: boolean) =>
      new Runner({
        modelProvider: new OpenAIProvider({ baseURL: baseURL(), apiKey: 'none', useResponses }),
        tracingDisabled: true,
      });
    const agent = new Agent({ name: 'test', model: 'broken' });
    const whole = runnerOf(true).run(agent, 'go');
    if (isNewest) await expect(whole).rejects.toThrow('response.failed');
    else expect((await whole).finalOutput).toBe('half ');
    await expect(runnerOf(false).run(agent, 'go')).rejects.toThrow('It broke.');
  });
});
