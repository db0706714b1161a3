import { expect, it } from 'vitest';
import { soakChaos } from '../long/soak/chaos.ts';

// A short version of `tsx test/long/chaos.ts`, as is chaos.servers.ts, with more clients; a failure names its seed.
it('clients of a server that is killed get every event once and unchanged', async () => {
  const seed = Date.now() % 1_000_000;
  const { acts, ledger } = await soakChaos({ rounds: 1, writers: 8, readers: 3, seed, stallTimeout: 60_000 });
  expect(ledger.faults.lines(), `seed ${seed}`).toEqual([]);
  // Some rounds stop the server with SIGTERM instead.
  expect(acts.kill + acts.stop).toBe(1);
  expect(ledger.runs.size).toBeGreaterThan(0);
});
