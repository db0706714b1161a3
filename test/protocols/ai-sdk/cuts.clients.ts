import { expect, it } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { serve } from '../../support/serve.ts';
import { showcase } from './agents.ts';
import { openChat } from './chats.ts';
import { shown, turnOf } from './turns.ts';

// cut-clients.ts cuts the streams of each client.
it('a chat with resumingFetch behind a proxy that cuts connections shows the same, and makes one run', async () => {
  const served = await serve([showcase]);
  const turn = (url: string, fetch: typeof globalThis.fetch) =>
    turnOf(openChat('ai', { api: `${url}/ai/showcase`, id: crypto.randomUUID(), fetch }));
  const whole = shown(await turn(served.url, fetch));
  for (const bytes of [0, 10, 700, 2_600]) {
    const proxy = await CuttingProxy.open(served.url, [bytes, bytes, bytes, bytes]);
    const chat = await turn(proxy.url, resumingFetch({ delay: 1 }));
    expect(shown(chat), `cut after ${bytes} bytes`).toEqual(whole);
    expect(proxy.cuts).toBeGreaterThan(0);
    await proxy.close();
    const { runs } = await (await served.get(`/runs?session_id=${chat.id}`)).json();
    expect(runs).toHaveLength(1);
  }
});
