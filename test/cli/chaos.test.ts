import { expect, it } from 'vitest';
import { play } from '../long/chaos/play.ts';

// The shortest version of `tsx test/long/chaos.ts`, which chaos.servers.ts has longer; a failure says its seed.
it('tells no client anything that a crash takes back', { timeout: 120_000 }, async () => {
  const seed = Date.now() % 1_000_000;
  const figures = await play({ rounds: 1, seed, requestTimeout: 60_000 }).catch((error: Error) => {
    throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
  });
  // Now and then it is only asked to stop, and always at the end.
  expect(figures.kills + figures.stops).toBe(2);
  expect(figures.acknowledged).toBeGreaterThan(0);
});
