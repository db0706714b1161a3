import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
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
      await node.offer(held);
      const { end } = await node.taken(held);
      proxy.break();
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const begun = performance.now();
        await expect(node.offer(late)).rejects.toThrow();
        expect(performance.now() - begun).toBeLessThan(1_000);
      }
      end();
      proxy.mend();
      const mended = performance.now();
      await vi.waitFor(() => node.offer(late), { timeout: 5_000 });
      await node.taken(late);
      expect(performance.now() - mended).toBeLessThan(4_000);
      expect(node.errors.length).toBeLessThanOrEqual(1);
    });

    it('do not keep a process from ending', async () => {
      const { proxy, node } = await behindProxy(url);
      const id = randomUUID();
      await node.offer(id);
      await node.taken(id);
      proxy.break();
      const begun = performance.now();
      await node.close();
      expect(performance.now() - begun).toBeLessThan(6_000);
    });
  });
}
