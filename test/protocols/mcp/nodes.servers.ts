import { afterAll, describe, expect, it } from 'vitest';
import { never } from '../../support/agents.ts';
import { finished, type Served, serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';
import { slowTalker } from './agents.ts';
import { clients } from './clients.ts';
import { cuttingFetch } from './cutting.ts';

const place = await redisPlace();

describe.skipIf(place === undefined)('three nodes with Redis', () => {
  afterAll(() => place?.remove());

  /** A fetch whose requests go to each node in turn. */
  async function nodes() {
    const store = place?.url ?? '';
    const agents = [slowTalker, never];
    const all: Served[] = [];
    for (let n = 0; n < 3; n += 1) all.push(await serve(agents, { store, retry: 1 }));
    let sent = 0;
    const send: typeof fetch = (input, init) => {
      sent += 1;
      return fetch(`${all[sent % 3]?.url}${new URL(String(input)).pathname}`, init);
    };
    return { all, send };
  }

  it.each(clients)('answer %s, each request and each rest of a stream from another node', async (_, open) => {
    const { send } = await nodes();
    const talk = async (bytes: readonly number[]) => {
      const { fetch, cuts } = cuttingFetch(bytes, send);
      const answer = () => ({ action: 'accept', content: { answer: 'yes' } }) as const;
      const client = await open('http://any.example', { answer, fetch });
      const { content } = await client.call('slow-talker', { input: 'hi' }, { onprogress: () => {} });
      await client.close();
      return { content, cuts: cuts() };
    };
    const whole = await talk([]);
    expect(JSON.stringify(whole.content)).toContain('You said yes. And so on.');
    let count = 0;
    for (let k = 170; k < 1_500; k += 110) {
      const { content, cuts } = await talk([k, k, 170 + (k % 400), 700, 170 + (k % 90)]);
      expect(content, `cut after ${k} bytes`).toEqual(whole.content);
      count += cuts;
    }
    expect(count).toBeGreaterThan(10);
  });

  it.each(clients.filter(([, , modern]) => !modern))('cancel a call of %s at another node', async (_, open) => {
    const { all, send } = await nodes();
    const client = await open('http://any.example', { fetch: send });
    const stop = new AbortController();
    const call = client.call('never', { input: '' }, { signal: stop.signal, onprogress: () => stop.abort() });
    await expect(call).rejects.toThrow();
    const [node] = all;
    if (node === undefined) throw new Error('no node');
    const { runs } = await (await node.get('/runs?agent_name=never&limit=1')).json();
    expect((await finished(node, runs[0].run_id)).status).toBe('cancelled');
  });
});
