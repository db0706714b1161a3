import { createOpenResponses } from '@ai-sdk/open-responses';
import { generateText, jsonSchema, type ModelMessage, streamText, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import { serveAll } from '../../support/serve.ts';
import { all } from './agents.ts';

const served = await serveAll(all, { docs: false, playground: false });
const provider = createOpenResponses({ name: 'rivulet', url: `${served.url}/v1/responses` });

const inputSchema = jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } });

describe('Open Responses, with the provider of the AI SDK', () => {
  it('streams text and reasoning', async () => {
    const { textStream, reasoningText, finishReason } = streamText({ model: provider('everything'), prompt: 'go' });
    let text = '';
    for await (const piece of textStream) text += piece;
    expect(text).toContain('Let me look. It is "there".\n');
    expect([await reasoningText, await finishReason]).toEqual(['It may be in the book.', 'stop']);
  });

  it('runs a tool of its own where the agent asks for it, and the run goes on', async () => {
    const cities: string[] = [];
    const getWeather = tool({
      inputSchema,
      execute: async ({ city }) => {
        cities.push(city);
        return 'sunny';
      },
    });
    const { text, steps } = await generateText({
      model: provider('weather'),
      prompt: 'How is the weather?',
      tools: { get_weather: getWeather },
      stopWhen: ({ steps: before }) => before.length > 3,
    });
    expect([cities, text, steps.length]).toEqual([['Oslo'], 'It is sunny.', 2]);
    const [first, second] = steps.map(({ response }) => response.id);
    expect(second?.startsWith(`${first}_`)).toBe(true);
  });

  it('keeps the history itself', async () => {
    const messages: ModelMessage[] = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
    ];
    const { text } = await generateText({ model: provider('mirror'), system: 'Be brief.', messages, temperature: 0.1 });
    const { input, request } = JSON.parse(text);
    expect(input.map(({ role }: { role: string }) => role)).toEqual(['user', 'agent/mirror', 'user']);
    expect([request.instructions, request.metadata]).toEqual(['Be brief.', { temperature: 0.1 }]);
  });

  it('sends files, and gets those of the agent as links and its sources as they are', async () => {
    const image = new Uint8Array([137, 80, 78, 71]);
    const { text: seen } = await generateText({
      model: provider('mirror'),
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', image, mediaType: 'image/png' },
            { type: 'file', data: new Uint8Array([1, 2]), mediaType: 'application/pdf', filename: 'a.pdf' },
          ],
        },
      ],
    });
    expect(JSON.parse(seen).input[0].parts).toEqual([
      { content_type: 'image/png', content_encoding: 'base64', content: 'iVBORw==' },
      { content_type: 'application/pdf', content_encoding: 'base64', content: 'AQI=', name: 'a.pdf' },
    ]);
    const { text, response } = await generateText({ model: provider('everything'), prompt: 'go' });
    expect(text).toContain('[notes.txt](data:text/plain;base64,UGFnZSAz)');
    // The provider reads no annotations and no images of an answer; they are in its body.
    expect(JSON.stringify(response.body)).toContain('"url":"https://example.com/book"');
    expect(JSON.stringify(response.body)).toContain('"type":"image_generation_call"');
  });

  it('is told of a response that is cancelled', async () => {
    const { fullStream, finishReason, rawFinishReason } = streamText({
      model: provider('never'),
      prompt: 'go',
      includeRawChunks: true,
    });
    for await (const part of fullStream) {
      const { type, response } = Object(part.type === 'raw' && part.rawValue);
      if (type === 'response.in_progress') void served.post(`/v1/responses/${response.id}/cancel`);
    }
    expect([await finishReason, await rawFinishReason]).toEqual(['other', 'cancelled']);
  });

  it('ends with the error of a failed run, and throws that of a refused request', async () => {
    const { text, finishReason, rawFinishReason } = streamText({ model: provider('broken'), prompt: 'go' });
    expect([await text, await finishReason, await rawFinishReason]).toEqual(['half ', 'error', 'server_error']);
    await expect(generateText({ model: provider('unknown'), prompt: 'go', maxRetries: 0 })).rejects.toThrow(
      'There is no agent unknown',
    );
  });
});
