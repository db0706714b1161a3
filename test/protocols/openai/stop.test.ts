import { describe, expect, it } from 'vitest';
import { never } from '../../support/agents.ts';
import { listen } from '../../support/serve.ts';
import { clientOf } from './client.ts';

/** A run that another node goes on with. */
const durable = { ...never, options: { durable: true } };

describe('a server that stops', () => {
  it('ends the stream of a response with an error that the client throws', async () => {
    const { app, url } = await listen([durable]);
    const client = clientOf(url, { maxRetries: 0 });
    const raw = await client.responses.create({ model: 'never', input: 'hi', stream: true });
    const helper = client.responses.stream({ model: 'never', input: 'hi' });
    const helped = expect(helper.finalResponse()).rejects.toMatchObject({ code: 'stopping' });
    const types: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { type } of raw) {
        types.push(type);
        if (type === 'response.in_progress') void helper.emitted('response.in_progress').then(() => app.close());
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'stopping' });
    await helped;
    expect(types).toEqual(['response.created', 'response.in_progress']);
    await app.close();
  });

  it('ends the stream of a chat with an error, and a request that waits with 503', async () => {
    const { app, url, post, get } = await listen([durable]);
    const client = clientOf(url, { maxRetries: 0 });
    const request = { model: 'never', messages: [{ role: 'user' as const, content: 'hi' }] };
    const waiting = post('/v1/chat/completions', request);
    const stream = await client.chat.completions.create({ ...request, stream: true });
    const atWork = async (): Promise<number> => (await (await get('/runs?status=in-progress')).json()).runs.length;
    await expect.poll(atWork).toBe(2);
    const read = async (): Promise<void> => {
      for await (const { choices } of stream) if (choices[0]?.delta.role === 'assistant') void app.close();
    };
    await expect(read()).rejects.toMatchObject({ code: 'stopping' });
    const refused = await waiting;
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([503, 'false']);
    expect((await refused.json()).error).toMatchObject({ type: 'server_error', code: 'stopping' });
    await app.close();
  });
});
