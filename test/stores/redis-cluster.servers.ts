import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { allChanges, type Key, type Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newIdBeside } from '../../src/engine/ids.ts';
import { inspectStore, openStore } from '../../src/stores/open.ts';
import { clusterPrefixes } from '../../src/stores/redis/cluster-prefixes.ts';
import { RedisClusterStore } from '../../src/stores/redis/cluster-store.ts';
import { connectCluster } from '../../src/stores/redis/connection.ts';
import { idOfKey, KeyPointers } from '../../src/stores/redis/key-pointers.ts';
import { defineScripts } from '../../src/stores/redis/scripts.ts';
import { type ClusterAddress, readStoreUrl } from '../../src/stores/store-url.ts';
import { deferred } from '../support/deferred.ts';
import { eventually } from '../support/eventually.ts';
import { startRedisCluster } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { storeContract } from './contract.ts';
import { claimsContract } from './contract-claims.ts';
import { NotificationRecorder } from './notification-recorder.ts';
import { append, end, fresh, linesOf, type TestWrite } from './writes.ts';

// Without replicas: none takes over from a primary that a loaded machine holds up, and loses what it had not yet got.
const cluster = await startRedisCluster();
afterAll(() => cluster?.stop());
const newUrl = (): string => `${cluster?.url}?prefix=${randomBytes(6).toString('hex')}`;

function clusterOf(url: string): { address: ClusterAddress; prefix: string } {
  const found = readStoreUrl(url);
  if (found?.kind !== 'redis-cluster') throw new Error(`${url} is no cluster`);
  return found;
}

/** The id of a session in a part of twelve. */
const sessionIn = (part: number): string => `session-${part.toString(16).padStart(4, '0')}`;

/** The first write of a run in a part. */
const created = (part: number, more: Partial<TestWrite['row']> = {}): TestWrite =>
  append(fresh({ session_id: sessionIn(part), ...more }), ['1']);

const keyOf = ({ row }: Pick<Write, 'row'>, name: string, more: Partial<Key> = {}): NonNullable<Write['key']> => ({
  scope: 'runs',
  key: name,
  hash: 'h',
  run_id: row.run_id,
  after: 0,
  created_at: '2026-01-02',
  fresh: '2026-01-01',
  ...more,
});

describe.skipIf(cluster === undefined)('a store in a Redis cluster', () => {
  const undivided = clusterOf(newUrl());
  // Of one part: the contract does not know that a session decides the part of its runs.
  const openUndivided = () => RedisClusterStore.open(undivided.address, undivided.prefix, () => {}, 1);
  storeContract('redis cluster', openUndivided, { costs: false });
  claimsContract('a redis cluster', openUndivided);

  const { open, closeAfter } = closedAfterEach();

  /** A store with a run in each of its twelve parts. */
  const filled = async (url = newUrl()): Promise<{ store: Store; writes: TestWrite[] }> => {
    const store = await open(url);
    const writes = Array.from({ length: 12 }, (_, part) => created(part));
    expect(new Set(await store.commit(writes))).toEqual(new Set(['taken']));
    return { store, writes };
  };

  it('is opened by any of its nodes, also where the first named one is away', async () => {
    const url = newUrl();
    const { writes } = await filled(url);
    const search = url.slice(url.indexOf('?'));
    const ports = cluster?.nodes.map(({ port }) => port) ?? [];
    for (const port of ports) {
      const store = await open(`redis+cluster://127.0.0.1:${port}${search}`);
      expect(await store.run(writes[7]?.row.run_id ?? '')).toEqual(writes[7]?.row);
    }
    const store = await open(`redis+cluster://127.0.0.1:1,127.0.0.1:${ports[0]}${search}`);
    expect(await store.run(writes[7]?.row.run_id ?? '')).toEqual(writes[7]?.row);
    await expect(openStore(`redis+cluster://127.0.0.1:1${search}`)).rejects.toThrow('None of its nodes answers');
    await expect(inspectStore(url)).resolves.toMatchObject({ version: 4, known: 4 });
  });

  it('spreads its parts evenly over three primaries', async () => {
    const url = newUrl();
    await filled(url);
    const name = clusterOf(url).prefix;
    const counts = await Promise.all(
      (cluster?.nodes ?? []).slice(0, 3).map(async ({ url: node }) => {
        const redis = new Redis(node);
        const found = await redis.keys(`{${name}/*}:runs`);
        await redis.quit();
        return found.length;
      }),
    );
    expect(counts).toEqual([4, 4, 4]);
  });

  it('lists the runs of all parts in order, a page at a time, and counts them', async () => {
    const { store, writes } = await filled();
    const ids = writes.map(({ row }) => row.run_id);
    const pages: string[] = [];
    for (let before: string | undefined; pages.length < 12; before = pages.at(-1))
      pages.push(...(await store.runs({}, before, 5)).map(({ run_id }) => run_id));
    expect(pages).toEqual([...ids].reverse());
    expect((await store.unfinished(undefined, ids[3] ?? '', 3)).map(({ run_id }) => run_id)).toEqual(ids.slice(4, 7));
    expect(await store.countRuns({ agent_names: ['echo'] })).toBe(12);
    expect(await store.openRuns()).toEqual([{ status: 'created', count: 12, oldest: ids[0] }]);
    expect((await store.runs({ session_id: sessionIn(5) }, undefined, 9)).map(({ run_id }) => run_id)).toEqual([
      ids[5],
    ]);
    const ended = writes.map(({ row }) => end(row, 'completed', { ended: { tokens: 2, seconds: 1 } }));
    await store.commit(ended);
    expect(await store.figures(['echo'])).toEqual([
      { agent_name: 'echo', completed: 12, failed: 0, tokens: 24, seconds: 12 },
    ]);
  });

  it('reads the messages of several sessions at once, in the order in which they are asked for', async () => {
    const { store, writes } = await filled();
    const resources = writes.map(({ row }, index) => ({
      resource_id: newIdBeside(row.session_id),
      session_id: row.session_id,
      run_id: row.run_id,
      content_type: 'application/json',
      body: String(index),
    }));
    await store.commit(writes.map(({ row }, at) => append(row, ['2'], { resources: resources.slice(at, at + 1) })));
    const asked = [...resources].reverse().map(({ resource_id }) => resource_id);
    const found = await store.resources([newIdBeside(sessionIn(3)), ...asked]);
    expect(found.map((one) => one?.body)).toEqual([undefined, ...asked.map((_, index) => String(11 - index))]);
  });

  it('forgets the failures of a URL in every part when a delivery to it succeeds in one', async () => {
    const store = await open(newUrl());
    const delivery = (part: number) => ({
      delivery_id: newIdBeside(sessionIn(part)),
      url: 'https://receiver',
      target: null,
      type: 'run.completed',
      body: '{}',
      created_at: '2026-01-01T00:00:00.000Z',
    });
    await store.commit([1, 2].map((part) => ({ ...created(part), deliveries: [delivery(part)] })));
    const claimed = await store.outbox.claimDeliveries('2026-01-02', '2026-01-03', 10);
    expect(claimed).toHaveLength(2);
    const attempt = { attempted_at: '2026-01-02T00:00:00.000Z', status: 500, error: null } as const;
    for (const one of claimed)
      await store.outbox.finishDelivery(one, { ...attempt, state: 'pending', next_at: '2026-01-02T00:00:01.000Z' });
    expect(await store.outbox.urlFailures(null, 'https://receiver')).toMatchObject({ attempts: 2 });
    const [again] = await store.outbox.claimDeliveries('2026-01-03', '2026-01-04', 1);
    if (again === undefined) throw new Error('no delivery is due');
    await store.outbox.finishDelivery(again, { ...attempt, status: 200, state: 'delivered' });
    expect(await store.outbox.urlFailures(null, 'https://receiver')).toBeUndefined();
  });

  it('hears of what any part writes, and of the tokens of the runs that are followed', async () => {
    const url = newUrl();
    const { store, writes } = await filled(url);
    const ids = writes.map(({ row }) => row.run_id);
    const recorder = await NotificationRecorder.of(await open(url), ids.slice(0, 6));
    await store.commit(writes.map(({ row }) => append({ ...row }, ['2'], { grown: true })));
    for (const run_id of ids.slice(0, 6)) await recorder.notified(run_id, { last: 2, changed: false });
    // A change of status comes through the same channels, after the tokens.
    await recorder.follow(allChanges);
    await store.commit(writes.map(({ row }) => append({ ...row, last: 2 }, ['3'])));
    for (const run_id of ids) await recorder.notified(run_id, { last: 3 });
    expect(ids.filter((run_id) => recorder.heard(run_id, 2))).toEqual(ids.slice(0, 6));
  });

  describe('with an Idempotency-Key', () => {
    it('creates one of two runs in different parts, whichever is first, and finds it by the key', async () => {
      const url = newUrl();
      const stores = [await open(url), await open(url)];
      for (let round = 0; round < 20; round += 1) {
        const runs = [created(round % 12), created((round * 5 + 1) % 12)];
        const outcomes = await Promise.all(
          runs.map(async (run, at) => (await stores[at]?.commit([{ ...run, key: keyOf(run, `k${round}`) }]))?.[0]),
        );
        expect(outcomes.filter((one) => one === 'taken').length, JSON.stringify(outcomes)).toBeLessThanOrEqual(1);
        const taken = runs[outcomes.indexOf('taken')];
        const known = await stores[0]?.key('runs', `k${round}`);
        expect(known?.run_id).toBe(taken?.row.run_id);
        for (const run of runs.filter((one) => one !== taken))
          expect(await stores[0]?.run(run.row.run_id)).toBeUndefined();
      }
    });

    it('executes the request anew where a process has died before its commit, whose late copy is refused', async () => {
      const url = newUrl();
      const store = await open(url);
      const lost = created(2);
      const late = { ...lost, key: keyOf(lost, 'k') };
      // What the dead process has done: it has made the pointer point to its run.
      const { address, prefix: name } = clusterOf(url);
      const client = await connectCluster(address);
      closeAfter({ close: () => client.quit() });
      defineScripts(client);
      const part = Number.parseInt(idOfKey(late.key).slice(-4), 16) % 12;
      await new KeyPointers(client, `{${clusterPrefixes(name)[part]}}:`).point(late.key, undefined, undefined);
      expect(await store.key('runs', 'k')).toBeUndefined();
      const again = created(9);
      expect(await store.commit([{ ...again, key: keyOf(again, 'k') }])).toEqual(['taken']);
      expect(await (await open(url)).commit([late])).toEqual(['key_used']);
      expect(await store.run(lost.row.run_id)).toBeUndefined();
      expect((await store.key('runs', 'k'))?.run_id).toBe(again.row.run_id);
    });

    it('is not taken back by a run that has lost it, also where both are committed together', async () => {
      const url = newUrl();
      const [store, other] = [await open(url), await open(url)];
      const [first, second] = [created(4), created(4)];
      // The second request has refused the first one, whose commit is repeated.
      const later = created(7);
      expect(await other.commit([{ ...later, key: keyOf(later, 'k') }])).toEqual(['taken']);
      const both = [first, second].map((run) => ({ ...run, key: keyOf(run, 'k') }));
      expect(await store.commit(both)).toEqual(['key_used', 'key_used']);
      expect((await store.key('runs', 'k'))?.run_id).toBe(later.row.run_id);
      const { address, prefix: name } = clusterOf(url);
      const client = await connectCluster(address);
      closeAfter({ close: () => client.quit() });
      defineScripts(client);
      await new KeyPointers(client, `{${clusterPrefixes(name)[4]}}:`).refuse(keyOf(first, 'l'), first.row.run_id);
      const again = [first, second].map((run) => ({ ...run, key: keyOf(run, 'l') }));
      await store.commit(again.slice(1));
      expect(await store.commit(again.slice(0, 1))).toEqual(['key_used']);
      expect((await store.key('runs', 'l'))?.run_id).toBe(second.row.run_id);
    });

    it('keeps a key with its run where the reply to it was repeated', async () => {
      const { store, writes } = await filled();
      const [run] = writes;
      if (run === undefined) throw new Error('there is no run');
      const reply = append(run.row, ['2'], { key: keyOf(run, 'reply', { scope: `reply ${run.row.run_id}` }) });
      expect(await store.commit([reply])).toEqual(['taken']);
      expect(await store.commit([append(reply.row, ['3'], { key: reply.key ?? keyOf(run, '') })])).toEqual([
        'key_used',
      ]);
      expect((await store.key(`reply ${run.row.run_id}`, 'reply'))?.run_id).toBe(run.row.run_id);
    });
  });

  /**
   * Appends to a run in each part while something happens to the cluster. Then the logs have every event once. `quietly` does
   * something while no commit is under way.
   */
  const keepsLogsDuring = async (
    event: (quietly: (work: () => Promise<void>) => Promise<void>) => Promise<void>,
    url = newUrl(),
  ): Promise<void> => {
    const { store, writes } = await filled(url);
    const recorder = await NotificationRecorder.of(
      await open(url),
      writes.map(({ row }) => row.run_id),
    );
    let done = false;
    let quiet: Promise<void> | undefined;
    const underWay = new Set<Promise<unknown>>();
    const quietly = async (work: () => Promise<void>): Promise<void> => {
      const { promise, resolve } = deferred();
      quiet = promise;
      await Promise.all(underWay);
      await work().finally(resolve);
    };
    const appended = Promise.all(
      writes.map(async ({ row }) => {
        let last = 1;
        for (let rest = 20; !done || rest > 0; last += 1) {
          await quiet;
          const write = append({ ...row, last }, [String(last + 1)], { grown: true });
          const commit = store.commit([write]);
          underWay.add(commit);
          expect(await commit.finally(() => underWay.delete(commit))).toEqual(['taken']);
          if (done) rest -= 1;
        }
        return last;
      }),
    );
    const happened = event(quietly).finally(() => {
      done = true;
    });
    const [counts] = await Promise.all([appended, happened]);
    await Promise.all(
      writes.map(async ({ row: { run_id } }, index) => {
        const all = Array.from({ length: counts[index] ?? 0 }, (_, at) => String(at + 1));
        expect(await linesOf(store, run_id)).toEqual(all);
        // Whatever was missed meanwhile, the last event arrives, or the subscriber hears that it may have missed some.
        await eventually(async () => {
          const heard = recorder.missed > 0 || recorder.last(run_id) === all.length;
          expect(heard).toBe(true);
        });
      }),
    );
  };

  it(
    'loses and repeats no event while slots of a primary move to another one',
    () =>
      keepsLogsDuring(async () => {
        const [from, to] = (await cluster?.primaries()) ?? [];
        if (from === undefined || to === undefined) throw new Error('there are no primaries');
        // More than half of what it has, and so the slots of at least two parts.
        await cluster?.move(from.id, to.id, 3_000);
      }),
    180_000,
  );

  it('loses and repeats no event that the replica has, while a primary dies and its replica takes over', async ({
    skip,
  }) => {
    const own = await startRedisCluster({ replicas: 1 });
    if (own === undefined) return skip();
    onTestFinished(() => own.stop());
    await keepsLogsDuring(async (quietly) => {
      const [victim] = await own.primaries();
      if (victim === undefined) throw new Error('there are no primaries');
      // A primary answers before its replica has the commit.
      const die = () => quietly(() => own.untilReplicated(victim).then(() => victim.kill()));
      await own.failOver(victim, die);
    }, own.url);
  }, 180_000);
});

describe('a store in a Redis cluster that changes', () => {
  const { open } = closedAfterEach();

  it('opens when the cluster is whole again, where it was down at first, and says that it waits', async ({ skip }) => {
    const own = await startRedisCluster();
    if (own === undefined) return skip();
    onTestFinished(() => own.stop());
    const [dead, lives] = await own.primaries();
    if (dead === undefined || lives === undefined) throw new Error('there are no primaries');
    await dead.kill();
    const redis = new Redis(lives.url);
    onTestFinished(() => redis.disconnect());
    await eventually(async () => expect(await redis.cluster('INFO')).toContain('cluster_state:fail'));
    const warnings: string[] = [];
    const opening = openStore(own.url, (text) => warnings.push(text));
    await eventually(() =>
      expect(warnings).toEqual([expect.stringMatching(/^waiting up to 60 s for .+ that is down: /)]),
    );
    await dead.restart();
    const store = await opening;
    onTestFinished(() => store.close());
    expect(await store.run('unknown')).toBeUndefined();
  }, 180_000);

  it('goes on with the other parts while a primary is away, and knows which ones answer', async ({ skip }) => {
    const own = await startRedisCluster();
    if (own === undefined) return skip();
    onTestFinished(() => own.stop());
    for (const { url } of own.nodes) {
      const redis = new Redis(url);
      await redis.config('SET', 'cluster-require-full-coverage', 'no');
      await redis.quit();
    }
    const store = await open(own.url);
    const parts = Array.from({ length: 12 }, (_, part) => part);
    await store.commit(parts.map((part) => created(part, { owner: 'key:alice' })));
    const answering = (): number[] => parts.filter((part) => store.partitions?.answers(part));
    const [dead] = await own.primaries();
    await dead?.kill();
    await eventually(async () => {
      expect(await store.openRuns('key:alice')).toMatchObject([{ status: 'created', count: 8 }]);
      expect(answering()).toHaveLength(8);
    });
    for (const part of answering()) expect(await store.runs({ status: 'created', part }, undefined, 9)).toHaveLength(1);
    await expect(store.runs({ status: 'created' }, undefined, 9)).rejects.toThrow();
    expect(await store.outbox.pendingDeliveries(9)).toEqual({ count: 0, oldest: null });
    expect(await store.outbox.claimDeliveries('2026-01-02', '2026-01-03', 10)).toEqual([]);
    await dead?.restart();
    await eventually(async () => {
      await store.due('2026-01-01', 1);
      expect(answering()).toEqual(parts);
    });
  }, 180_000);

  it('hears of all its parts again when the node that it was subscribed at was taken out', async ({ skip }) => {
    const own = await startRedisCluster();
    if (own === undefined) return skip();
    onTestFinished(() => own.stop());
    const store = await open(own.url);
    const writes = Array.from({ length: 12 }, (_, part) => created(part));
    expect(new Set(await store.commit(writes))).toEqual(new Set(['taken']));
    const recorder = await NotificationRecorder.of(store, []);
    const clients = (await own.primaries()).map((node) => ({ node, redis: new Redis(node.url) }));
    onTestFinished(() => clients.forEach(({ redis }) => void redis.disconnect()));
    const subscribersOf = async (redis: Redis): Promise<number> =>
      String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).split('addr=').length - 1;
    const counts = await Promise.all(clients.map(({ redis }) => subscribersOf(redis)));
    const left = clients[counts.findIndex((count) => count > 0)];
    const stays = clients.find((one) => one !== left)?.node;
    if (stays === undefined || left === undefined) throw new Error('the store is subscribed at no primary');
    const leaves = left.node;
    await own.move(leaves.id, stays.id, leaves.slots);
    await own.manage('del-node', `127.0.0.1:${stays.port}`, leaves.id);
    await eventually(async () => expect(await subscribersOf(left.redis)).toBe(0));
    await recorder.follow(allChanges);
    expect(new Set(await store.commit(writes.map(({ row }) => append(row, ['2']))))).toEqual(new Set(['taken']));
    for (const { row } of writes) await recorder.notified(row.run_id, { last: 2 });
  }, 180_000);
});
