import { expect, it } from 'vitest';
import { soakChaos } from '../long/soak/chaos.ts';

// A short version of `tsx test/long/chaos.ts`; a failure names its seed.
it('clients of a server that is killed get every event once and unchanged', { timeout: 120_000 }, async () => {
  const seed = Date.now() % 1_000_000;
  const { acts, ledger } = await soakChaos({ rounds: 3, seed, stallTimeout: 60_000 });
  expect(ledger.faults.lines(), `seed ${seed}`).toEqual([]);
  // Some rounds stop the server with SIGTERM instead.
  expect(acts.kill + acts.stop).toBe(3);
  expect(ledger.runs.size).toBeGreaterThan(0);
});
