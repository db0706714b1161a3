import { afterAll, describe, expect, it } from 'vitest';
import { serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';
import { all } from './agents.ts';
import { clientOf } from './client.ts';
import { expectExactCuts, slowly } from './cuts.ts';

// Hundreds of connections, one after the other.
it('the stream of a response is whole, cut after each few bytes', { timeout: 900_000 }, async () => {
  const { url } = await serve([slowly]);
  expect(await expectExactCuts([url], 17)).toBeGreaterThan(500);
});

const redis = await redisPlace();

describe.skipIf(redis === undefined)('three nodes with Redis', () => {
  afterAll(() => redis?.remove());
  const nodes = async (): Promise<string[]> => {
    const agents = [...all, slowly].map((agent) => ({ ...agent, options: { ...agent.options, durable: true } }));
    const node = () => serve(agents, { store: redis?.url ?? '' });
    return (await Promise.all([node(), node(), node()])).map(({ url }) => url);
  };

  it('each continue the stream of a response that was cut on another', async () => {
    expect(await expectExactCuts(await nodes(), 331)).toBeGreaterThan(30);
  });

  it('each resume, read, cancel and delete the responses of the others', async () => {
    const clients = (await nodes()).map((url) => clientOf(url));
    const [a, b, c] = clients;
    if (a === undefined || b === undefined || c === undefined) throw new Error('expected three nodes');
    const asked = await a.responses.create({ model: 'ask', input: 'hi' });
    const call = asked.output.at(-1);
    if (call?.type !== 'function_call') throw new Error('expected a call');
    const answer = { type: 'function_call_output', call_id: call.call_id, output: 'yes' } as const;
    const answered = await b.responses
      .stream({ model: 'ask', previous_response_id: asked.id, input: [answer] })
      .finalResponse();
    expect(answered.output_text).toBe('You said yes.');
    expect((await c.responses.retrieve(answered.id)).output_text).toBe('You said yes.');
    const begun = await a.responses.create({ model: 'never', input: 'hi', background: true });
    const watched = c.responses.stream({ response_id: begun.id }).finalResponse();
    expect((await b.responses.cancel(begun.id)).status).toBe('cancelled');
    expect((await watched).status).toBe('cancelled');
    await c.responses.delete(begun.id);
    await expect(a.responses.retrieve(begun.id)).rejects.toMatchObject({ status: 404 });
  });
});
