import { afterAll, describe } from 'vitest';
import { serve } from '../support/serve.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { agents, countReadersOfAllNodes } from './readers-of-nodes.ts';

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`two nodes with ${kind}`, () => {
    afterAll(() => place?.remove());
    const node = (worker: boolean) => serve(agents, { store: place?.url ?? '', worker });
    countReadersOfAllNodes(async () => [await node(true), await node(false)]);
  });
}
