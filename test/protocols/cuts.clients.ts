import { afterAll, describe, it } from 'vitest';
import { nodes } from '../support/nodes.ts';
import { listen, type Served } from '../support/serve.ts';
import { agents, cutClients, expectTheSame } from './cut-clients.ts';

const protocols = ['a2a', 'ag-ui', 'ai-sdk', 'mcp'] as const;
const { store, queue } = nodes(agents);
const places: Record<string, () => Promise<Served>[]> = {
  memory: () => [listen(agents, { retry: 1 })],
  SQLite: () => [listen(agents, { retry: 1, store: 'sqlite::memory:' })],
  'three nodes that share a store': () =>
    ['a', 'b', 'c'].map((name) =>
      listen(agents, {
        store,
        dispatcher: queue.dispatcher(name),
        retry: 1,
        docs: false,
        playground: false,
        protocols,
      }),
    ),
};

describe.each(Object.keys(places))('on %s', (place) => {
  const servers = Promise.all(places[place]?.() ?? []);
  afterAll(async () => Promise.all((await servers).map(({ app }) => app.close())));

  it.each(cutClients)('a client has everything once, wherever its streams are cut: $name', async (client) => {
    const urls = (await servers).map(({ url }) => url);
    await expectTheSame(client, urls, 230);
  });
});
