import { afterAll, describe, expect, it } from 'vitest';
import { soakEffects } from '../long/effects/soak-effects.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

const sqlite = { url: 'sqlite:effects.db', nodes: 1, remove: async () => {} };
const [redis, postgres] = [await redisPlace(), await postgresPlace()];
const places = { sqlite, redis: redis && { ...redis, nodes: 2 }, postgres: postgres && { ...postgres, nodes: 2 } };

// The short version of `tsx test/long/effects.ts`; a failure names its seed.
for (const [name, place] of Object.entries(places)) {
  describe.skipIf(place === undefined)(`agents with effects outside, and a store in ${name}`, () => {
    afterAll(() => place?.remove());

    it('repeat, lose and undo none that they must not, while nodes are killed, paused and stopped', async () => {
      const { url = '', nodes = 1 } = place ?? {};
      const seed = Date.now() % 1_000_000;
      const fronts = nodes === 1 ? 0 : seed % 2;
      const { faults, placed } = await soakEffects({
        ...{ store: url, nodes, fronts, runs: 30, clients: 30, seed },
        maxQuiet: 10_000,
      });
      expect(faults.lines(), `seed ${seed}`).toEqual([]);
      expect(placed.length).toBeGreaterThanOrEqual(30);
    });
  });
}
