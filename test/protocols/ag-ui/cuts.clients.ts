import { concat, map, of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ReconnectingAgent } from '../../../examples/ag-ui/reconnecting-agent.ts';
import { sharedState, statePatch, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { listen, type Served } from '../../support/serve.ts';

const talker = agent('talker', (_, context) =>
  concat(
    of('One ', '“two” ', 'three.'),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(sharedState({ steps: [] }), statePatch([{ op: 'add', path: '/steps/-', value: 1 }])),
    of('Shall ', 'I?'),
    context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
    of(' And ', 'so ', 'on.'),
  ),
);

describe.each(['memory', 'sqlite'])('on %s', (kind) => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([talker], kind === 'memory' ? {} : { store: 'sqlite::memory:' });
  });
  afterAll(() => served.app.close());

  const post = { threadId: 'a thread', state: { steps: [] }, messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
  const answer = (interruptId = '') => [{ interruptId, status: 'resolved', payload: 'yes' } as const];

  /** What an agent has after both of its runs. */
  async function talk(url: string, pause: number) {
    const own = new ReconnectingAgent(
      { url: `${url}/ag-ui/talker`, initialMessages: [{ ...post.messages[0] } as never] },
      pause,
    );
    await own.runAgent();
    await own.runAgent({ resume: answer(own.pendingInterrupts[0]?.id) });
    const ids = new Map(own.messages.map(({ id }, index) => [id, index]));
    const plain = JSON.stringify([own.messages, own.state]).replace(/[\da-f-]{36}\.\d+/g, (id) => `${ids.get(id)}`);
    return plain;
  }

  it('the example of a reconnecting agent has all messages once, however often its streams are cut', async () => {
    const whole = await talk(served.url, 0);
    expect(whole).toContain('You said yes. And so on.');
    for (let step = 40; step < 1_000; step += 190) {
      // The first connections are cut after `step` bytes, then after more, so that each request comes through at last.
      const proxy = await CuttingProxy.open(
        served.url,
        Array.from({ length: 8 }, (_, n) => 330 + step * (n % 4)),
      );
      onTestFinished(() => proxy.close());
      expect(await talk(proxy.url, 1)).toBe(whole);
      expect(proxy.cuts).toBeGreaterThan(0);
      await proxy.close();
    }
  });
});
