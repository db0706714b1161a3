import { expect, it } from 'vitest';
import { soakWebhooks } from '../long/soak/webhooks.ts';

// A short version of `tsx test/long/webhooks.ts`; a failure names its seed.
it('webhooks of a server that is killed, to a receiver that is killed, arrive in order', {
  timeout: 300_000,
}, async () => {
  const seed = Date.now() % 1_000_000;
  const { faults, runs } = await soakWebhooks({ kills: 4, seed });
  expect(faults.lines(), `seed ${seed}`).toEqual([]);
  expect(runs).toBeGreaterThan(0);
});
