import { expect, it } from 'vitest';
import { soakChaos } from '../long/soak/chaos.ts';

// Short versions of `tsx test/long/chaos.ts`; a failure names its seed.
it.each([
  ['three times', { rounds: 3 }],
  ['once, with more clients', { rounds: 1, writers: 8, readers: 3 }],
])('clients of a server that is killed %s get every event once and unchanged', async (_, plan) => {
  const seed = Date.now() % 1_000_000;
  const { acts, ledger } = await soakChaos({ ...plan, seed, stallTimeout: 120_000 });
  expect(ledger.faults.lines(), `seed ${seed}`).toEqual([]);
  // Some rounds stop the server with SIGTERM instead.
  expect(acts.kill + acts.stop).toBe(plan.rounds);
  expect(ledger.runs.size).toBeGreaterThan(0);
});
