import { afterAll, describe, it } from 'vitest';
import { serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';
import { followWithCuts } from './follow.ts';

const place = await redisPlace();

describe.skipIf(place === undefined)('three nodes on Redis', () => {
  afterAll(() => place?.remove());

  it.each(['long-poll', 'sse', true] as const)(
    'give a client of Durable Streams each event once, which goes to another node at each request and is cut off (live: %s)',
    async (live) => {
      const store = place?.url ?? '';
      // The agent is a tap of this process: the node that has the run has it, whichever that is.
      await followWithCuts(live, 400, async (tap) => [
        await serve([tap.agent], { store }),
        await serve([tap.agent], { store }),
        await serve([tap.agent], { store }),
      ]);
    },
  );
});

describe('one node', () => {
  it.each(['long-poll', 'sse', true] as const)(
    'gives a client of Durable Streams each event once, cut off after any number of bytes (live: %s)',
    (live) => followWithCuts(live, 10, async (tap) => [await serve([tap.agent])]),
  );

  it.each(['long-poll', 'sse', true] as const)('gives it each event once from SQLite as well (live: %s)', (live) =>
    followWithCuts(live, 400, async (tap) => [await serve([tap.agent], { store: 'sqlite::memory:' })]),
  );
});
