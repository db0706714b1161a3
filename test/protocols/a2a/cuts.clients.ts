import { describe, expect, it, onTestFinished } from 'vitest';
import { followTask } from '../../../examples/a2a/follow-task.ts';
import { file } from '../../../src/index.ts';
import { CuttingProxy } from '../../support/cutting-proxy.ts';
import { shared } from '../../support/serve.ts';
import { talkerWith } from '../talker.ts';
import { type Binding, bindings, clientOf, message } from './clients.ts';

describe.each(['memory:', 'sqlite::memory:'])('on %s', (store) => {
  const served = shared([talkerWith(file('a.txt', 'hello'))], { store });

  /** All updates of a task with a question, without what differs from task to task. */
  async function talk(binding: Binding, url: string, through = url): Promise<string[]> {
    // The card names the server itself, so the client's requests are sent to the proxy.
    const send: typeof fetch = (to, init) => fetch(String(to).replace(url, through), init);
    const client = await clientOf(`${url}/a2a/talker/`, binding, send);
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
    const { url } = await served();
    const whole = await talk(binding, url);
    expect(whole.join('')).toContain('You said yes.');
    for (let step = 40; step < 2_000; step += 230) {
      // The first connections are cut after some bytes, then after more, so that each request comes through at last.
      const bytes = Array.from({ length: 10 }, (_, n) => 500 + step * (n % 4));
      const proxy = await CuttingProxy.open(url, bytes);
      onTestFinished(() => proxy.close());
      expect(await talk(binding, url, proxy.url)).toEqual(whole);
      expect(proxy.cuts).toBeGreaterThan(0);
      await proxy.close();
    }
  });
});
