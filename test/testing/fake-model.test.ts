import OpenAI from 'openai';
import { type FakeAnswer, fakeModel } from 'rivulet/testing';
import { describe, expect, it, onTestFinished } from 'vitest';

async function scripted(...of: Parameters<typeof fakeModel>) {
  const model = await fakeModel(...of);
  onTestFinished(() => model.close());
  const { chat } = new OpenAI({ baseURL: model.url, apiKey: 'none' });
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  return {
    requests: model.requests,
    whole: () => chat.completions.create({ model: 'fake', messages }),
    streamed: () => chat.completions.stream({ model: 'fake', messages }),
  };
}

const call: FakeAnswer = [{ tool: 'weather', input: { city: 'Oslo' } }];

describe('the fake model', () => {
  it('streams a text word by word', async () => {
    const { streamed, requests } = await scripted(['It is cold.']);
    const tokens: string[] = [];
    const stream = streamed().on('content', (token) => tokens.push(token));
    expect(await stream.finalContent()).toBe('It is cold.');
    expect(tokens.filter((token) => token !== '')).toEqual(['It ', 'is ', 'cold.']);
    expect(requests[0]?.body).toMatchObject({ model: 'fake', messages: [{ role: 'user', content: 'Hello' }] });
  });

  it.for(['whole', 'streamed'] as const)('calls tools, %s', async (how) => {
    const { whole, streamed } = await scripted([call]);
    const { choices } = await (how === 'whole' ? whole() : streamed().finalChatCompletion());
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ id: 'call_0', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] },
    });
  });

  it('has an answer for each request, and says where there is none', async () => {
    const { whole } = await scripted(['one', ['t', 'wo']]);
    expect((await whole()).choices[0]?.message.content).toBe('one');
    const { choices, usage } = await whole();
    expect(choices[0]?.message.content).toBe('two');
    expect(usage).toEqual({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 });
    await expect(whole()).rejects.toThrow('400 The fake model has 2 answers, and this is request 3;');
  });

  it('tells the client of an error of its script', async () => {
    const { whole } = await scripted(() => {
      throw new Error('not this time');
    });
    await expect(whole()).rejects.toThrow('400 The fake model failed: not this time');
  });

  it.for(['whole', 'streamed'] as const)('breaks an answer off, %s', async (how) => {
    const { whole, streamed } = await scripted(() => ['half', { end: 'broken' }]);
    await expect(how === 'whole' ? whole() : streamed().finalChatCompletion()).rejects.toThrow();
  });
});
