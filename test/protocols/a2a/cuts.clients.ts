import { concat, map, of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { followTask } from '../../../examples/a2a/follow-task.ts';
import { file, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { listen, type Served } from '../../support/serve.ts';
import { type Binding, bindings, clientOf, message } from './clients.ts';

const talker = agent('talker', (_, context) =>
  concat(
    of('One ', '“two” ', 'three.'),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(file('a.txt', 'hello')),
    of('Shall ', 'I?'),
    context.await('Well?').pipe(map(({ message: said }) => `You said ${said.parts[0]?.content}.`)),
    of(' And ', 'so ', 'on.'),
  ),
);

describe.each(['memory', 'sqlite'])('on %s', (kind) => {
  let served: Served;
  beforeAll(async () => {
    served = await listen([talker], kind === 'memory' ? {} : { store: 'sqlite::memory:' });
  });
  afterAll(() => served.app.close());

  /** All updates of a task with a question, without what differs from task to task. */
  async function talk(url: string, binding: Binding): Promise<string[]> {
    // The card names the server itself, so the client's requests are sent to the proxy.
    const send: typeof fetch = (to, init) => fetch(String(to).replace(served.url, url), init);
    const client = await clientOf(`${served.url}/a2a/talker/`, binding, send);
    const updates: string[] = [];
    let taskId = '';
    for (const text of ['hi', 'yes']) {
      const asked = message(text, { messageId: crypto.randomUUID(), taskId, contextId: 'c' });
      for await (const update of followTask(client, asked, 1)) {
        if (update.payload?.$case === 'task') taskId = update.payload.value.id;
        updates.push(JSON.stringify(update));
      }
    }
    return updates.map((update) => update.replace(/[\da-f-]{36}/g, '…').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then'));
  }

  it.each(bindings)('a client with %s has each update once, however often its streams are cut', async (binding) => {
    const whole = await talk(served.url, binding);
    expect(whole.join('')).toContain('You said yes.');
    for (let step = 40; step < 2_000; step += 230) {
      // The first connections are cut after some bytes, then after more, so that each request comes through at last.
      const bytes = Array.from({ length: 10 }, (_, n) => 500 + step * (n % 4));
      const proxy = await CuttingProxy.open(served.url, bytes);
      onTestFinished(() => proxy.close());
      expect(await talk(proxy.url, binding)).toEqual(whole);
      expect(proxy.cuts).toBeGreaterThan(0);
      await proxy.close();
    }
  });
});
