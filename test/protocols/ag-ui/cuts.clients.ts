import { describe, expect, it, onTestFinished } from 'vitest';
import { ReconnectingAgent } from '../../../examples/ag-ui/reconnecting-agent.ts';
import { sharedState, statePatch } from '../../../src/index.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { shared } from '../../support/serve.ts';
import { talkerWith } from '../talker.ts';

const talker = talkerWith(sharedState({ steps: [] }), statePatch([{ op: 'add', path: '/steps/-', value: 1 }]));

describe.each(['memory:', 'sqlite::memory:'])('on %s', (store) => {
  const served = shared([talker], { store });

  const answer = (interruptId = '') => [{ interruptId, status: 'resolved', payload: 'yes' } as const];

  /** What an agent has after both of its runs. */
  async function talk(url: string, pause: number) {
    const own = new ReconnectingAgent(
      { url: `${url}/ag-ui/talker`, initialMessages: [{ id: 'u1', role: 'user', content: 'hi' }] },
      pause,
    );
    await own.runAgent();
    await own.runAgent({ resume: answer(own.pendingInterrupts[0]?.id) });
    const ids = new Map(own.messages.map(({ id }, index) => [id, index]));
    const plain = JSON.stringify([own.messages, own.state]).replace(/[\da-f-]{36}\.\d+/g, (id) => `${ids.get(id)}`);
    return plain;
  }

  it('the example of a reconnecting agent has all messages once, however often its streams are cut', async () => {
    const { url } = await served();
    const whole = await talk(url, 0);
    expect(whole).toContain('You said yes. And so on.');
    for (let step = 40; step < 1_000; step += 190) {
      // The first connections are cut after `step` bytes, then after more, so that each request comes through at last.
      const proxy = await CuttingProxy.open(
        url,
        Array.from({ length: 8 }, (_, n) => 330 + step * (n % 4)),
      );
      onTestFinished(() => proxy.close());
      expect(await talk(proxy.url, 1)).toBe(whole);
      expect(proxy.cuts).toBeGreaterThan(0);
      await proxy.close();
    }
  });
});
