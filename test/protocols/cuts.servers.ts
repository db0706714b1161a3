import { afterAll, describe, expect, it } from 'vitest';
import { never } from '../support/agents.ts';
import { finished, serve } from '../support/serve.ts';
import { redisPlace } from '../support/servers.ts';
import { agents, cutClients, expectTheSame } from './cut-clients.ts';
import { cutting } from './cutting.ts';
import { clients as mcpClients } from './mcp/clients.ts';

const place = await redisPlace();

describe.skipIf(place === undefined)('three nodes with Redis', () => {
  afterAll(() => place?.remove());
  const store = place?.url ?? '';

  it.each(cutClients)('give a client exactly the rest, each time from another node: $name', async (client) => {
    const node = async () => (await serve(agents, { store, retry: 1 })).url;
    await expectTheSame(client, [await node(), await node(), await node()], 110);
  });

  it.each(mcpClients.filter(([, , modern]) => !modern))('cancel a call of %s at another node', async (_, open) => {
    const [node, ...others] = [await serve([never], { store }), await serve([never], { store })];
    const { fetch } = cutting(
      [node, ...others].map(({ url }) => url),
      [],
    );
    const client = await open('http://any.example', { fetch });
    const stop = new AbortController();
    const call = client.call('never', { input: '' }, { signal: stop.signal, onprogress: () => stop.abort() });
    await expect(call).rejects.toThrow();
    const { runs } = await (await node.get('/runs?agent_name=never&limit=1')).json();
    expect((await finished(node, runs[0].run_id)).status).toBe('cancelled');
  });
});
