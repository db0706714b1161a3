import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { isDeepStrictEqual as equals } from 'node:util';
import { PostgresQueueBackend, RedisQueueBackend } from 'bullmq';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TestNode } from './test-node.ts';

const hold = resolve(import.meta.dirname, 'hold-runs.ts');

/** Names of the connections to a store, as the server lists them. */
async function connections(url: string, name: string): Promise<string[]> {
  if (url.startsWith('redis')) {
    const redis = new Redis(url);
    const list = String(await redis.client('LIST'));
    await redis.quit();
    return [...list.matchAll(/ name=(\S+)/g)].flatMap(([, one = '']) => (one.includes(name) ? [one] : []));
  }
  const client = new Client(url.replace(/[?&]schema=[^&]*/, ''));
  await client.connect();
  const text = 'SELECT application_name AS name FROM pg_stat_activity WHERE application_name LIKE $1';
  const { rows } = await client.query<{ name: string }>(text, [`%${name}%`]);
  await client.end();
  return rows.map((row) => row.name);
}

for (const [kind, place] of Object.entries({ Redis: await redisPlace(), PostgreSQL: await postgresPlace() })) {
  describe.skipIf(place === undefined)(`runs that are dispatched through ${kind}`, () => {
    afterAll(() => place?.remove());
    const { url = '', name = '' } = place ?? {};
    const backend = kind === 'Redis' ? RedisQueueBackend.prototype : PostgresQueueBackend.prototype;

    it('are executed once, however often they are offered', async () => {
      const nodes = [await TestNode.open(url), await TestNode.open(url)];
      const [one, other] = nodes;
      const ids = Array.from({ length: 20 }, () => randomUUID());
      const ended: string[] = [];
      await Promise.all([one?.offer(...ids, ...ids), other?.offer(...ids)]);
      await eventually(async () => {
        for (const { run_id, end } of nodes.flatMap((node) => node.held.splice(0))) {
          await one?.offer(run_id);
          ended.push(run_id);
          end();
        }
        expect(nodes.flatMap((node) => node.settled)).toHaveLength(20);
      });
      expect(ended.toSorted()).toEqual(ids.toSorted());
    });

    it('are not looked at again once they have ended', async () => {
      const node = await TestNode.open(url, { ended: true });
      const id = randomUUID();
      for (const times of [1, 2]) {
        // The second offer counts only when the first job is gone.
        await eventually(async () => {
          await node.offer(id);
          expect(node.runs.filter((one) => one === id)).toHaveLength(times);
        });
        (await node.taken(id, times)).end();
      }
      await node.close();
      expect(node.settled).toEqual([]);
    });

    it('start without waiting for a poll', async () => {
      const taker = await TestNode.open(url);
      const giver = await TestNode.open(url);
      await giver.dispatcher.pause();
      const times: number[] = [];
      for (let round = 0; round < 60; round += 1) {
        const id = randomUUID();
        const begun = performance.now();
        await giver.offer(id);
        const { end } = await taker.taken(id);
        times.push(performance.now() - begun);
        end();
        await taker.isSettled(id);
      }
      // They start within milliseconds. Without notifications, each would wait for the next poll: two or five seconds.
      expect(times.toSorted((a, b) => a - b)[30]).toBeLessThan(1_000);
    });

    it('are given to another node soon after their lease when theirs is killed', async () => {
      const lease = 1_500;
      const child = spawn(process.execPath, ['--import', 'tsx', hold, url, String(lease)]);
      onTestFinished(() => void child.kill('SIGKILL'));
      const id = randomUUID();
      const node = await TestNode.open(url, { lease });
      const silent = await TestNode.open(url, { lease });
      await Promise.all([node.dispatcher.pause(), silent.offer(id)]);
      await silent.taken(id).then(({ end }) => end());
      await silent.isSettled(id);
      await silent.dispatcher.pause();
      const printed = once(child.stdout, 'data');
      await node.offer(id);
      expect(String(await printed)).toBe(`${id}\n`);
      const heir = await TestNode.open(url, { lease });
      const killed = performance.now();
      child.kill('SIGKILL');
      await heir.taken(id);
      // Two leases at most. With the intervals that BullMQ has by default, it would be half a minute.
      expect(performance.now() - killed).toBeLessThan(10 * lease);
    });

    it('stay with a live node for longer than a lease, also when renewals fail', async () => {
      /** How often a run is taken while its lease is renewed for longer than its time, and the errors. */
      const held = async (lease: number): Promise<{ taken: number; errors: unknown[] }> => {
        const renew = vi.spyOn(backend, 'extendLocks');
        onTestFinished(() => renew.mockRestore());
        for (let failures = 0; failures < 3; failures += 1) renew.mockRejectedValueOnce(new Error('no answer'));
        const nodes = [await TestNode.open(url, { lease }), await TestNode.open(url, { lease })] as const;
        const id = randomUUID();
        await nodes[0].offer(id);
        const holder = await Promise.race(nodes.map((node) => node.taken(id)));
        // Leases are renewed after a sixth of their time.
        await eventually(() => expect(renew.mock.settledResults.length).toBeGreaterThanOrEqual(3 + 8));
        holder.end();
        await Promise.race(nodes.map((node) => node.isSettled(id)));
        renew.mockRestore();
        await Promise.all(nodes.map((node) => node.close()));
        return { taken: nodes.flatMap(({ runs }) => runs).length, errors: nodes.flatMap(({ errors }) => errors) };
      };
      const expected = { taken: 1, errors: [new Error('no answer')] };
      // A process that other load holds up for half a second may lose a short lease. It keeps a longer one.
      for (const lease of [2_000, 8_000]) if (equals(await held(lease), expected)) return;
      expect(await held(16_000)).toEqual(expected);
    });

    it('may end while their lease is renewed, which is no error', async () => {
      const node = await TestNode.open(url, { lease: 2_000 });
      const id = randomUUID();
      const renew = vi.spyOn(backend, 'extendLocks').mockImplementationOnce(async () => {
        node.held[0]?.end();
        await node.isSettled(id);
        return [id];
      });
      onTestFinished(() => renew.mockRestore());
      await node.offer(id);
      await expect.poll(() => renew.mock.settledResults[0]?.type).toBe('fulfilled');
      await node.dispatcher.close();
      expect(node.errors).toEqual([]);
    });

    it('take no slot while they await', async () => {
      const node = await TestNode.open(url, { slots: 1 });
      const ids = [randomUUID(), randomUUID(), randomUUID()] as const;
      await node.offer(...ids);
      const first = await node.taken(ids[0]);
      first.lease.rest();
      first.lease.rest();
      const second = await node.taken(ids[1]);
      expect(node.runs).toEqual(ids.slice(0, 2));
      second.lease.rest();
      await node.taken(ids[2]);
      expect(node.settled).toEqual([]);
    });

    it('never work in more slots than there are, however they await, continue and end', async () => {
      const node = await TestNode.open(url, { slots: 1 });
      const [woken, asleep, ...rest] = Array.from({ length: 12 }, () => randomUUID());
      await node.offer(woken ?? '', asleep ?? '');
      const first = await node.taken(woken ?? '');
      first.lease.rest();
      const second = await node.taken(asleep ?? '');
      second.lease.rest();
      first.lease.wake();
      first.lease.wake();
      first.end();
      second.end();
      await Promise.all([node.isSettled(first.run_id), node.isSettled(second.run_id)]);
      first.lease.rest();
      await node.offer(...rest);
      for (let ended = 2; ended < 12; ended += 1) {
        await eventually(() => expect(node.held).toHaveLength(ended + 1), 1);
        // Time for another run to arrive, if there were a slot.
        await node.offer(rest[ended - 2] ?? '');
        expect(node.runs).toEqual([woken, asleep, ...rest.slice(0, ended - 1)]);
        node.held[ended]?.end();
      }
    });

    it('are executed again when they were offered during an execution, whose node checks them when they are settled', async () => {
      const id = randomUUID();
      const node: TestNode = await TestNode.open(url, {
        settled: async (run_id) => {
          if (run_id === id && node.settled.length === 1) await node.offer(id);
        },
      });
      await node.offer(id);
      const first = await node.taken(id);
      await node.offer(id);
      first.end();
      const second = await node.taken(id, 2);
      second.end();
      await eventually(() => expect(node.settled).toEqual([id, id]));
    });

    it('are not taken after the pause, and those that were taken continue', async () => {
      const paused = await TestNode.open(url);
      const id = randomUUID();
      await paused.offer(id);
      const { end } = await paused.taken(id);
      await paused.dispatcher.pause();
      const other = await TestNode.open(url);
      const ids = Array.from({ length: 20 }, () => randomUUID());
      for (const one of ids) {
        await paused.offer(one);
        (await other.taken(one)).end();
      }
      expect(paused.runs).toEqual([id]);
      end();
      await paused.dispatcher.close();
      expect(paused.settled).toEqual([id]);
    });

    it('may be offered while their node hands them over at its end', async () => {
      const other = await TestNode.open(url, { slots: 1 });
      const busy = randomUUID();
      await other.offer(busy);
      await other.taken(busy);
      const leaving: TestNode = await TestNode.open(url, { settled: (run_id) => leaving.offer(run_id) });
      const id = randomUUID();
      await leaving.offer(id);
      const { end } = await leaving.taken(id);
      await leaving.dispatcher.pause();
      const closing = leaving.dispatcher.close();
      end();
      await closing;
      other.held[0]?.end();
      await other.taken(id);
    });

    it('need as many connections for hundreds as for one', async () => {
      const counted = new URL(url);
      counted.searchParams.set(kind === 'Redis' ? 'connectionName' : 'application_name', `count-${name}`);
      const before = await connections(url, name);
      const node: TestNode = await TestNode.open(counted.href, { work: async () => {} });
      const round = async (ids: string[]): Promise<void> => {
        await node.offer(...ids);
        await eventually(() => expect(node.settled).toEqual(expect.arrayContaining(ids)));
      };
      await round([randomUUID()]);
      for (let part = 0; part < 4; part += 1) await round(Array.from({ length: 50 }, () => randomUUID()));
      const most = kind === 'Redis' ? 3 : 5;
      await expect.poll(async () => (await connections(url, name)).length - before.length).toBeLessThanOrEqual(most);
      await node.close();
      await expect.poll(async () => (await connections(url, name)).length).toBe(before.length);
    });
  });
}
