import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { Seat } from './seat.ts';

async function behindProxy(url: string) {
  const proxy = await CuttingProxy.open(url, []);
  onTestFinished(() => proxy.close());
  const through = new URL(url);
  through.port = new URL(proxy.url).port;
  through.hostname = '127.0.0.1';
  return { proxy, seat: await Seat.open(through.href) };
}

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs that are dispatched through ${kind}, which is away for a while,`, () => {
    afterAll(() => place?.remove());
    const { url = '' } = place ?? {};

    it('are refused at once while the server is away, and go on soon when it is back', async () => {
      const { proxy, seat } = await behindProxy(url);
      const [held = '', late = ''] = [randomUUID(), randomUUID()];
      await seat.offer(held);
      const { end } = await seat.taken(held);
      proxy.break();
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const begun = performance.now();
        await expect(seat.offer(late)).rejects.toThrow();
        expect(performance.now() - begun).toBeLessThan(1_000);
      }
      end();
      proxy.mend();
      const mended = performance.now();
      await vi.waitFor(() => seat.offer(late), { timeout: 5_000 });
      await seat.taken(late);
      expect(performance.now() - mended).toBeLessThan(4_000);
      expect(seat.errors.length).toBeLessThanOrEqual(1);
    });

    it('do not keep a process from ending while the server is away', async () => {
      const { proxy, seat } = await behindProxy(url);
      const id = randomUUID();
      await seat.offer(id);
      await seat.taken(id);
      proxy.break();
      const begun = performance.now();
      await seat.close();
      expect(performance.now() - begun).toBeLessThan(6_000);
    });
  });
}
