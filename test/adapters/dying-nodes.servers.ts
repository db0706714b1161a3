import { expect, it } from 'vitest';
import { dyingNodes } from '../long/adapters/dying-nodes.ts';
import { redisPlace } from '../support/servers.ts';

const place = await redisPlace();

it.skipIf(place === undefined)('ends chats with each adapter on two nodes that are killed in turn', async () => {
  const { faults } = await dyingNodes({ store: place?.url ?? '', chats: 5, seed: 1 }).finally(() => place?.remove());
  expect(faults).toEqual([]);
});
