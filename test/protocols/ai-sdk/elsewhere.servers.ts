import { afterAll, describe, it } from 'vitest';
import { serve } from '../../support/serve.ts';
import { redisPlace } from '../../support/servers.ts';
import { agents, expectTheSameElsewhere } from './elsewhere.ts';

const place = await redisPlace();

describe.skipIf(place === undefined)('three nodes on Redis', () => {
  afterAll(() => place?.remove());

  it('show a chat the same where each reconnect lands on another node', async () => {
    const store = place?.url ?? '';
    const urls: string[] = [];
    for (let n = 0; n < 3; n += 1) urls.push((await serve(agents, { store })).url);
    await expectTheSameElsewhere(urls, [250, 401, 700, 1_001, 1_500, 2_001]);
  });
});
