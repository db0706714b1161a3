import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { OutageProxy } from '../support/outage-proxy.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { Hearing } from './hearing.ts';
import { append, fresh, numbered } from './writes.ts';

const places = { redis: await redisPlace(), postgres: await postgresPlace() };
afterAll(async () => {
  for (const place of Object.values(places)) await place?.remove();
});

// These are real time-outs, of ten seconds and more; so both wait at the same time.
describe.concurrent('a store whose connections are dead, which nobody says', () => {
  for (const [name, place] of Object.entries(places)) {
    it.skipIf(place === undefined)(
      `fails to read after ten seconds, commits once, and hears that it has missed something: ${name}`,
      async ({ onTestFinished }) => {
        const proxy = await OutageProxy.open(place?.url ?? '');
        onTestFinished(() => proxy.close());
        const store = await openStore(proxy.url);
        onTestFinished(() => store.close());
        const first = append(fresh(), ['1']);
        await store.commit([first]);
        const hearing = await Hearing.of(store);
        await store.run(first.row.run_id);
        proxy.mute();
        const from = performance.now();
        const commit = store.commit([append(first.row, ['2'])]);
        await expect(store.run(first.row.run_id)).rejects.toThrow();
        expect(performance.now() - from).toBeLessThan(11_000);
        expect(await commit).toEqual(['taken']);
        expect(numbered(await store.events(first.row.run_id, 1, 10))).toEqual([[2, '2']]);
        await hearing.until(() => hearing.missed > 0);
        expect(performance.now() - from).toBeLessThan(20_000);
      },
      30_000,
    );
  }
});
