import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { OutageProxy } from '../support/outage-proxy.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { NotificationRecorder } from './notification-recorder.ts';
import { append, fresh, numbered } from './writes.ts';

const places = { redis: await redisPlace(), postgres: await postgresPlace() };
afterAll(async () => {
  for (const place of Object.values(places)) await place?.remove();
});

// The time-outs are real, of ten seconds and more, so both stores are tested at the same time.
describe.concurrent('a store whose connections died without a notice', () => {
  for (const [name, place] of Object.entries(places)) {
    it.skipIf(place === undefined)(
      `fails to read after ten seconds, commits once, and reports a possible loss of notifications: ${name}`,
      async ({ onTestFinished }) => {
        const proxy = await OutageProxy.open(place?.url ?? '');
        onTestFinished(() => proxy.close());
        const store = await openStore(proxy.url);
        onTestFinished(() => store.close());
        const first = append(fresh(), ['1']);
        await store.commit([first]);
        const recorder = await NotificationRecorder.of(store);
        await store.run(first.row.run_id);
        proxy.mute();
        const from = performance.now();
        const commit = store.commit([append(first.row, ['2'])]);
        await expect(store.run(first.row.run_id)).rejects.toThrow();
        // Without its time-out of ten seconds, nothing would end the read: the proxy keeps the connections.
        expect(performance.now() - from).toBeLessThan(60_000);
        expect(await commit).toEqual(['taken']);
        expect(numbered(await store.events(first.row.run_id, 1, 10))).toEqual([[2, '2']]);
        await recorder.waitFor(() => recorder.missed > 0);
        // Found by a check each ten seconds, which waits for five. Nothing else would find it.
        expect(performance.now() - from).toBeLessThan(60_000);
      },
    );
  }
});
