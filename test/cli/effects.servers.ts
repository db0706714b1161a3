import { afterAll, describe, it } from 'vitest';
import { soakEffects } from '../long/effects/soak-effects.ts';
import type { Act } from '../long/soak/ledger.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

const sqlite = { url: 'sqlite:effects.db', remove: async () => {} };
const places = { sqlite, redis: await redisPlace(), postgres: await postgresPlace() };
const acts: readonly Act[] = ['kill', 'pause', 'stop', 'pause', 'stop'];

// The short version of `tsx test/long/effects.ts`; a failure names its seed. All stores at once, because the nodes mostly
// wait for steps and leases.
for (const [name, place] of Object.entries(places)) {
  describe.concurrent(`agents with effects outside, and a store in ${name}`, () => {
    afterAll(() => place?.remove());

    it.skipIf(place === undefined)(
      'repeat and undo nothing that they must not, while nodes are killed, paused and stopped',
      async ({ expect }) => {
        const seed = Date.now() % 1_000_000;
        const size = place === sqlite ? { nodes: 1, fronts: 0 } : { nodes: 2, fronts: seed % 2 };
        const plan = { store: place?.url ?? '', ...size, runs: 30, clients: 30, seed, maxQuiet: 10_000, acts };
        const { faults, placed } = await soakEffects(plan);
        expect(faults.lines(), `seed ${seed}`).toEqual([]);
        expect(placed.length).toBeGreaterThanOrEqual(30);
      },
    );
  });
}
