import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { delivery } from './contract-outbox.ts';
import { keyOf, ownedRow, wholeRun } from './contract-owners.ts';

/** All items of all keys of a prefix in Redis. */
async function redisTexts(url: string, prefix: string): Promise<string[]> {
  const redis = new Redis(url);
  const texts: string[] = [];
  for (const key of await redis.keys(`{${prefix}}:*`)) {
    const type = await redis.type(key);
    const values: Record<string, () => Promise<unknown>> = {
      string: () => redis.get(key),
      hash: async () => Object.entries(await redis.hgetall(key)),
      list: () => redis.lrange(key, 0, -1),
      set: () => redis.smembers(key),
      zset: () => redis.zrange(key, '0', '-1'),
      stream: () => redis.xrange(key, '-', '+'),
    };
    const items = [await values[type]?.()].flat();
    texts.push(...items.map((item) => `${key} ${JSON.stringify(item)}`));
  }
  await redis.quit();
  return texts;
}

/** All rows of a schema in PostgreSQL. */
async function postgresTexts(url: string, schema: string): Promise<string[]> {
  const client = new Client(url);
  await client.connect();
  const { rows: tables } = await client.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
    [schema],
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query(`SELECT * FROM "${schema}"."${name}"`);
    texts.push(...rows.map((row) => JSON.stringify(row)));
  }
  await client.end();
  return texts;
}

const places = { redis: await redisPlace(), postgres: await postgresPlace() };
const readers = { redis: redisTexts, postgres: postgresTexts };

describe.each(['redis', 'postgres'] as const)('an owner that is erased from %s', (name) => {
  const place = places[name];
  afterAll(() => place?.remove());
  const { open } = closedAfterEach();

  const fill = async (store: Store, owner: string): Promise<void> => {
    for (let n = 0; n < 5; n += 1) {
      const row = ownedRow(owner, { session_id: `session-${n % 2}` });
      const [first, last] = wholeRun(row, n === 0 ? 'failed' : 'completed');
      if (first === undefined || last === undefined) throw new Error('a run has a beginning and an end');
      const resource_id = `state-${row.run_id}`;
      const state = { resource_id, session_id: row.session_id, run_id: null, content_type: 'a/b', body: owner };
      await store.commit([
        { ...first, key: keyOf(row, `k${n}`), resources: [...(first.resources ?? []), state] },
        { ...last, state: `/resources/${resource_id}`, deliveries: [delivery(n), delivery(n)] },
      ]);
    }
    const [claimed] = await store.outbox.claimDeliveries('2001-01-01T00:00:00.000Z', '2002-01-01T00:00:00.000Z', 1);
    if (claimed !== undefined)
      await store.outbox.finishDelivery(claimed, {
        state: 'failed',
        attempted_at: claimed.created_at,
        status: 410,
        error: 'gone',
      });
    await store.remove((await store.runs({ owner }, undefined, 1))[0]?.run_id ?? '');
  };

  it.skipIf(place === undefined)('leaves nothing of it there, and all of another', async () => {
    const { url = '', name: space = '' } = place ?? {};
    const store = await open(url);
    const texts = async (owner: string): Promise<string[]> =>
      (await readers[name](url, space)).filter((text) => text.includes(owner));
    const [gone, kept] = ['key:gone-with-the-owner', 'key:kept-for-the-other'];
    await fill(store, kept);
    await fill(store, gone);
    const before = await texts(kept);
    expect((await texts(gone)).length).toBeGreaterThan(10);
    for (const session_id of await store.sessionsOf(gone, 100)) await store.removeSession(session_id);
    await store.removeOwner(gone);
    while (await store.sweep({ keys: '' })) await Promise.resolve();
    expect(await texts(gone)).toEqual([]);
    expect((await texts(kept)).toSorted()).toEqual(before.toSorted());
  });
});
