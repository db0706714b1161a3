import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TestNode } from './test-node.ts';

async function behindProxy(url: string) {
  const proxy = await CuttingProxy.open(url, []);
  onTestFinished(() => proxy.close());
  const through = new URL(url);
  through.port = new URL(proxy.url).port;
  through.hostname = '127.0.0.1';
  return { proxy, node: await TestNode.open(through.href) };
}

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs that are dispatched through ${kind} during an outage`, () => {
    afterAll(() => place?.remove());
    const { url = '' } = place ?? {};

    it('are refused at once, and dispatched soon after it', async () => {
      const { proxy, node } = await behindProxy(url);
      const [held = '', late = ''] = [randomUUID(), randomUUID()];
      const begun = performance.now();
      await node.offer(held);
      const { end } = await node.taken(held);
      proxy.break();
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const refused = await node.offer(late).catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(Error);
        // An offer that waits for the server fails with this error, after five seconds.
        expect(String(refused)).not.toContain('no answer');
      }
      end();
      proxy.mend();
      const mended = performance.now();
      await eventually(() => node.offer(late));
      await node.taken(late);
      // It takes about a second. Without a reconnect, time-outs of ten seconds would find the lost connections.
      expect(performance.now() - mended).toBeLessThan(9_000);
      // One error in ten seconds.
      expect(node.errors.length).toBeLessThanOrEqual(1 + Math.floor((performance.now() - begun) / 10_000));
    });

    it('do not keep a process from ending', async () => {
      const { proxy, node } = await behindProxy(url);
      const id = randomUUID();
      await node.offer(id);
      await node.taken(id);
      proxy.break();
      // Without its limits of 2.5 seconds each, it would not end before the outage does.
      await node.close();
    });
  });
}
