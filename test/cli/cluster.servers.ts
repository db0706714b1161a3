import { afterAll, describe, expect, it } from 'vitest';
import { soakCluster } from '../long/soak/cluster.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';

// The short version of `tsx test/long/cluster.ts`; a failure names its seed.
for (const [name, place] of Object.entries({ redis: await redisPlace(), postgres: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`three nodes with a store in ${name}`, () => {
    afterAll(() => place?.remove());

    it('finish every run with the same events on all nodes, while one is killed, one paused and one stopped', async () => {
      const seed = Date.now() % 1_000_000;
      const { ledger, acts, verified } = await soakCluster({
        store: place?.url ?? '',
        nodes: 3,
        lease: 1_000,
        runs: 30,
        clients: 30,
        seed,
        acts: ['kill', 'pause', 'stop'],
        stallTimeout: 120_000,
      });
      expect(ledger.faults.lines(), `seed ${seed}`).toEqual([]);
      expect(acts).toEqual({ kill: 1, pause: 1, stop: 1, starts: 2 });
      expect(Object.values(verified.outcomes).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(30);
    });
  });
}
