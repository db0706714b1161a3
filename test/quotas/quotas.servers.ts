import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { QuotaRule, Quotas } from '../../src/core/ports/quotas.ts';
import { FailedAttempts } from '../../src/http/auth/failed-attempts.ts';
import { openQuotas } from '../../src/quotas/open.ts';
import { openStore } from '../../src/stores/open.ts';
import { postgresPlace, redisPlace, startRedis } from '../support/servers.ts';

const rule: QuotaRule = { name: 'requests', points: 5, window: 600 };

const errors: unknown[] = [];

async function open(url: string): Promise<Quotas> {
  const quotas = await openQuotas(url, (error) => void errors.push(error));
  onTestFinished(() => quotas.close());
  return quotas;
}

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`counters in ${kind}`, () => {
    afterAll(() => place?.remove());

    it('are shared by nodes, and refuse what is beyond the points', async () => {
      const url = place?.url ?? '';
      // The schema of PostgreSQL is the store's.
      const store = await openStore(url);
      onTestFinished(() => store.close());
      const nodes = [await open(url), await open(url)];
      // PostgreSQL makes its table while each node counts for itself.
      for (const node of nodes) await expect.poll(async () => isShared(node, nodes)).toBe(true);
      const taken = [];
      for (let times = 0; times < 6; times += 1) taken.push(await nodes[times % 2]?.take(rule, 'alice', 1));
      expect(taken.map((state) => [state?.allowed, state?.remaining])).toEqual([
        [true, 4],
        [true, 3],
        [true, 2],
        [true, 1],
        [true, 0],
        [false, 0],
      ]);
      expect(await nodes[0]?.take(rule, `${'x'.repeat(500)}`, 1)).toMatchObject({ allowed: true, remaining: 4 });
      // Wrong credentials of an address as well: fewer than twenty at each node are enough.
      const [one, two] = nodes.map((node) => new FailedAttempts(node));
      await expect
        .poll(
          () => {
            one?.add('2001:db8::1');
            two?.add('2001:db8::2');
            return two?.waitOf('2001:db8::3');
          },
          { interval: 200, timeout: 3_600 },
        )
        .toBeGreaterThan(0);
    });
  });
}

const postgres = await postgresPlace();
describe.skipIf(postgres === undefined)('counters in PostgreSQL', () => {
  afterAll(() => postgres?.remove());

  it('are shared also where their table could not be made at first', async () => {
    const url = postgres?.url ?? '';
    const nodes = [await open(url), await open(url)];
    // There is no schema yet.
    for (const node of nodes) expect(await isShared(node, nodes)).toBe(false);
    await expect.poll(() => errors.length).toBeGreaterThan(1);
    const store = await openStore(url);
    onTestFinished(() => store.close());
    for (const node of nodes) await expect.poll(async () => isShared(node, nodes)).toBe(true);
  });
});

/** Whether what one node takes is counted on the other one. */
let probes = 0;
async function isShared(node: Quotas, nodes: readonly Quotas[]): Promise<boolean> {
  probes += 1;
  const key = `probe ${probes}`;
  await node.take(rule, key, 1);
  const others = await Promise.all(nodes.filter((one) => one !== node).map((one) => one.take(rule, key, 1)));
  return others.every(({ remaining }) => remaining === 3);
}

describe('counters in a Redis that is away', () => {
  it('count in each process, and again in Redis when it is back', async () => {
    const redis = await startRedis();
    if (redis === undefined) throw new Error('there is no redis-server');
    onTestFinished(() => redis.stop());
    const quotas = await open(redis.url);
    expect(await quotas.take(rule, 'alice', 3)).toMatchObject({ remaining: 2 });
    const client = new Redis(redis.url);
    const keys = await client.keys('*');
    client.disconnect();
    // With the hash tag of the store: a cluster of Redis keeps all keys of a store in one slot.
    expect(keys).toEqual([expect.stringMatching(/^\{rivulet\}:quota:requests:/)]);
    await redis.kill();
    await expect.poll(async () => (await quotas.take({ ...rule, name: 'probe' }, 'x', 1)).allowed).toBe(true);
    const away = [];
    for (let times = 0; times < 6; times += 1) away.push((await quotas.take(rule, 'alice', 1)).allowed);
    expect(away).toEqual([true, true, true, true, true, false]);
    await redis.restart();
    await expect.poll(async () => (await quotas.take(rule, 'bob', 1)).remaining).toBeLessThan(4);
  });
});
