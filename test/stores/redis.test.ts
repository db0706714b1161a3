import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { redisPlace, startRedis } from '../support/servers.ts';
import { opening } from './opened.ts';
import { append, end, fresh, said } from './writes.ts';

const place = await redisPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined)('a store in Redis', () => {
  const { url = '', name = '' } = place ?? {};
  const { open, closing } = opening();
  const client = (): Redis => {
    const redis = new Redis(url);
    closing({ close: () => redis.quit() });
    return redis;
  };

  it('leaves nothing behind of what was removed but the sums, and for a day what it has answered last', async () => {
    const store = await open(url);
    const row = fresh({ due: '2026-01-03T00:00:00.000Z' });
    const key = { scope: 's', key: 'k', hash: 'h', run_id: row.run_id, after: 0, created_at: '2026-01-01', fresh: '' };
    const first = append(row, ['1'], { journal: ['{}'], state: '/s', key, ...said(row, 'a') });
    const last = end({ ...first.row, due: null }, 'completed', { ended: { tokens: 1, seconds: 1 } });
    await store.commit([first, last]);
    await store.remove(row.run_id);
    await store.removeSession(row.session_id);
    await store.sweep({ keys: '2026-01-02' });
    const redis = client();
    const names = (await redis.keys(`{${name}}:*`)).sort();
    expect(names).toEqual([expect.stringMatching(/:commit:[\w-]+$/), expect.stringMatching(/:figures:echo$/)]);
    expect(await redis.ttl(names[0] ?? '')).toBeGreaterThan(86_000);
  });

  it('goes on with a new connection when its own is killed', async () => {
    const store = await open(url, 'connectionName=to-be-killed');
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const redis = client();
    const id = /id=(\d+).* name=to-be-killed /.exec(String(await redis.client('LIST')))?.[1] ?? '';
    await redis.client('KILL', 'ID', id);
    await vi.waitFor(() => store.run(first.row.run_id));
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
  });

  it('goes on when Redis has forgotten its scripts', async () => {
    const store = await open(url);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    await client().script('FLUSH');
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
    expect(await store.events(first.row.run_id, 1, 10)).toEqual([{ first: 2, lines: ['2'] }]);
  });

  it('waits to commit while its Redis is a replica, which only reads', async ({ skip, onTestFinished }) => {
    const server = (await startRedis()) ?? skip('there is no redis-server to start');
    onTestFinished(server.stop);
    const store = await openStore(server.url);
    onTestFinished(() => store.close());
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const redis = new Redis(server.url);
    onTestFinished(() => redis.disconnect());
    await redis.replicaof('127.0.0.1', 1);
    const refused = async (): Promise<boolean> => /errorstat_READONLY/.test(await redis.info('errorstats'));
    const commit = store.commit([append(first.row, ['2'])]);
    while (!(await refused()));
    await redis.replicaof('NO', 'ONE');
    expect(await commit).toEqual(['taken']);
    expect(await store.events(first.row.run_id, 1, 10)).toEqual([{ first: 2, lines: ['2'] }]);
  });

  it('does not open a database that there is not', async () => {
    const there = new URL(url);
    there.pathname = '/9999';
    await expect(openStore(there.href)).rejects.toThrow(/out of range/);
  });
});
