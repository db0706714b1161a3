import { describe, expect, it } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { serve } from '../../support/serve.ts';
import { showcase } from './agents.ts';
import { type Chat, openChat, type Version, versionNames } from './chats.ts';
import { bytesOf, type Cut, cutting, shown, turnOf } from './cuts.ts';

const turn = (version: Version, url: string, fetch: typeof globalThis.fetch): Promise<Chat> =>
  turnOf(openChat(version, { api: `${url}/ai/showcase`, id: crypto.randomUUID(), fetch }));

describe.each(versionNames)('a chat of %s with resumingFetch', (version) => {
  it.each<Cut>(['break', 'end'])('shows the same where every response of its turn is cut (%s)', async (cut) => {
    // The strict version of the client on the other store.
    const store = version === 'ai50' ? 'sqlite::memory:' : 'memory:';
    const served = await serve([showcase], { store });
    const chat = await turn(version, served.url, fetch);
    const [whole, bytes] = [shown(chat), await bytesOf(served.url, chat)];
    let cuts = 0;
    for (let n = 0; n < 6; n += 1) {
      // Within frames and between them, the first bytes included.
      const every = 1 + Math.floor((bytes * n) / 12) + (n % 3);
      const send = cutting([every, every, every, n % 2 === 0 ? -1 : -2, every, every], cut);
      const resumed = await turn(version, served.url, resumingFetch({ fetch: send, delay: 1 }));
      expect(shown(resumed), `cut after ${every} of ${bytes} bytes`).toEqual(whole);
      cuts += send.state.cuts;
    }
    expect(cuts).toBeGreaterThan(15);
  });
});

describe('a chat with resumingFetch behind a proxy', () => {
  it('that cuts connections shows the same, and makes one run', async () => {
    const served = await serve([showcase]);
    const whole = shown(await turn('ai', served.url, fetch));
    for (const bytes of [0, 10, 700, 2_600]) {
      const proxy = await CuttingProxy.open(served.url, [bytes, bytes, bytes, bytes]);
      const chat = await turn('ai', proxy.url, resumingFetch({ delay: 1 }));
      expect(shown(chat), `cut after ${bytes} bytes`).toEqual(whole);
      expect(proxy.cuts).toBeGreaterThan(0);
      await proxy.close();
      const { runs } = await (await served.get(`/runs?session_id=${chat.id}`)).json();
      expect(runs).toHaveLength(1);
    }
  });
});
