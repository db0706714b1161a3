import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Store } from '../../src/core/store.ts';
import { openStore } from '../../src/stores/open.ts';
import { redisPlace, startRedis } from '../support/servers.ts';
import { append, end, fresh, said } from './writes.ts';

const place = await redisPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a store in Redis', () => {
  const { url = '', name = '' } = place ?? {};
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  const open = async (...parameters: string[]): Promise<Store> => {
    const store = await openStore([url, ...parameters].join('&'));
    opened.push(store);
    return store;
  };
  const client = (): Redis => {
    const redis = new Redis(url);
    opened.push({ close: () => redis.quit() });
    return redis;
  };

  it('leaves nothing behind of what was removed but the sums', async () => {
    const store = await open();
    const row = fresh({ due: '2026-01-03T00:00:00.000Z' });
    const key = { scope: 's', key: 'k', hash: 'h', run_id: row.run_id, after: 0, created_at: '2026-01-01', fresh: '' };
    const first = append(row, ['1'], { journal: ['{}'], state: '/s', key, ...said(row, 'a') });
    const last = end({ ...first.row, due: null }, 'completed', { ended: { tokens: 1, seconds: 1 } });
    await store.commit([first, last]);
    await store.remove(row.run_id);
    await store.removeSession(row.session_id);
    await store.sweep({ keys: '2026-01-02' });
    const names = await client().keys(`{${name}}:*`);
    expect(names).toEqual([expect.stringMatching(/:figures:echo$/)]);
  });

  it('goes on with a new connection when its own is killed', async () => {
    const store = await open('connectionName=to-be-killed');
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const redis = client();
    const id = /id=(\d+).* name=to-be-killed /.exec(String(await redis.client('LIST')))?.[1] ?? '';
    await redis.client('KILL', 'ID', id);
    await vi.waitFor(() => store.run(first.row.run_id));
    expect(await store.commit([append(first.row, ['2'])])).toEqual([true]);
  });

  it('goes on when Redis has forgotten its scripts', async () => {
    const store = await open();
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    await client().script('FLUSH');
    expect(await store.commit([append(first.row, ['2'])])).toEqual([true]);
    expect(await store.events(first.row.run_id, 1, 10)).toEqual([{ first: 2, lines: ['2'] }]);
  });

  it('does not open a database that there is not', async () => {
    const there = new URL(url);
    there.pathname = '/9999';
    await expect(openStore(there.href)).rejects.toThrow(/out of range/);
  });
});

describe('a store in a Redis that goes away', () => {
  it('fails at once while it is away, and goes on when it is back', async ({ skip }) => {
    const server = (await startRedis()) ?? skip('there is no redis-server to start');
    const store = await openStore(server.url);
    onTestFinished(() => store.close());
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const inFlight = Promise.allSettled(Array.from({ length: 10 }, () => store.run(first.row.run_id)));
    onTestFinished(server.stop);
    await server.kill();
    await inFlight;
    const from = performance.now();
    await expect(store.commit([append(first.row, ['2'])])).rejects.toThrow();
    await expect(store.events(first.row.run_id, 0, 1)).rejects.toThrow();
    expect(performance.now() - from).toBeLessThan(1_000);
    await server.restart();
    await vi.waitFor(() => store.run(first.row.run_id), 5_000);
    expect(await store.commit([append(fresh(), ['1'])])).toEqual([true]);
  });

  it('closes while it is away', async ({ skip }) => {
    const server = (await startRedis()) ?? skip('there is no redis-server to start');
    const store = await openStore(server.url);
    await server.stop();
    await store.close();
    await expect(store.run('any')).rejects.toThrow();
  });
});
