import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { inspectStore, openStore } from '../../src/stores/open.ts';
import { eventually } from '../support/eventually.ts';
import { redisPlace, startRedis } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { damageContract } from './contract-damage.ts';
import { append, end, fresh, messageOf, numbered } from './writes.ts';

const place = await redisPlace();
afterAll(() => place?.remove());

/** Waits until a monitor has shown everything that came before. */
async function monitored(monitor: Redis, redis: Redis): Promise<void> {
  const mark = randomUUID();
  const shown = new Promise<void>((resolve) => {
    const look = (_time: string, words: string[]): void => {
      if (words[1] !== mark) return;
      monitor.off('monitor', look);
      resolve();
    };
    monitor.on('monitor', look);
  });
  await redis.echo(mark);
  await shown;
}

describe.skipIf(place === undefined)('a store in Redis', () => {
  const { url = '', name = '' } = place ?? {};
  const { open, closeAfter } = closedAfterEach();
  const client = (of = url): Redis => {
    const redis = new Redis(of);
    closeAfter({ close: () => redis.quit() });
    return redis;
  };

  it('leaves of removed runs only the sums, and for a day the last outcomes', async () => {
    const store = await open(url);
    const row = fresh({ due: '2026-01-03T00:00:00.000Z' });
    const key = { scope: 's', key: 'k', hash: 'h', run_id: row.run_id, after: 0, created_at: '2026-01-01', fresh: '' };
    const first = append(row, ['1'], { journal: ['{}'], state: '/s', key, ...messageOf(row, 'a') });
    const last = end({ ...first.row, due: null }, 'completed', { ended: { tokens: 1, seconds: 1 } });
    await store.commit([first, last]);
    await store.remove(row.run_id);
    await store.removeSession(row.session_id);
    while (await store.sweep({ keys: '2026-01-02' }));
    const redis = client();
    const names = (await redis.keys(`{${name}}:*`)).sort();
    expect(names).toEqual([
      expect.stringMatching(/:agents$/),
      expect.stringMatching(/:commit:[\w-]+$/),
      expect.stringMatching(/:figures:echo$/),
      expect.stringMatching(/:version$/),
    ]);
    expect(await redis.ttl(names[1] ?? '')).toBeGreaterThan(86_000);
  });

  it('is watched only by a user with the right to subscribe to the channels of runs', async () => {
    const admin = client();
    const user = `watcher-${name}`;
    closeAfter({ close: () => admin.acl('DELUSER', user) });
    await admin.acl('SETUSER', user, 'on', '>secret', '~*', '+@all', 'resetchannels', `&{${name}}:moved`);
    const own = new URL(url);
    [own.username, own.password] = [user, 'secret'];
    const store = await open(own.href);
    await expect(store.watch?.(() => {})).rejects.toThrow('NOPERM');
    await admin.acl('SETUSER', user, `&{${name}}:moved:*`);
    const watch = await store.watch?.(() => {});
    await watch?.follow(fresh().run_id);
    await watch?.close();
  });

  it('upgrades the data of an earlier build: runs that need an execution wait for a node, and its queue is gone', async () => {
    const store = await open(url);
    const agent_name = `agent-${fresh().run_id}`;
    const waiting = Array.from({ length: 450 }, () => append(fresh({ agent_name }), ['1']));
    const [ended, resting] = [append(fresh({ agent_name }), ['1']), append(fresh({ agent_name }), ['1'])];
    await store.commit([...waiting, ended, resting]);
    const rests = { ...resting.row, status: 'awaiting' as const, rests_at: ended.row.created_at };
    await store.commit([end(ended.row, 'completed'), append(rests, ['2'])]);
    const redis = client();
    for (const { row } of [...waiting, ended, resting])
      await redis.hdel(`{${name}}:run:${row.run_id}`, 'needs_node', 'needs_agent');
    await redis.unlink(`{${name}}:waiting:${agent_name}`);
    await redis.mset(`{${name}}:version`, 3, `{${name}}:bull:runs:id`, 7, `{${name}}:bull:runs:job`, 'a');
    const claimed = await Promise.all(
      ['a', 'b', 'c'].map(async (node) => {
        const { claims } = await open(url);
        await claims?.renewLease(node, 60_000);
        return claims?.claimRuns(node, [agent_name], 500);
      }),
    );
    const mine = new Set(waiting.map(({ row }) => row.run_id));
    const found = claimed.flatMap((ids = []) =>
      ids.filter((id) => mine.has(id) || id === ended.row.run_id || id === rests.run_id),
    );
    expect(found.toSorted()).toEqual([...mine]);
    expect(await redis.get(`{${name}}:version`)).toBe('4');
    expect(await redis.keys(`{${name}}:bull:*`)).toEqual([]);
  });

  it('upgrades the data of an earlier build for as long as that takes, where each answer comes in time', async () => {
    const store = await open(url);
    const waiting = Array.from({ length: 450 }, () => append(fresh(), ['1']));
    await store.commit(waiting);
    await client().set(`{${name}}:version`, 3);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { sendCommand } = Redis.prototype;
    let scripts = 0;
    vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, stream) {
      if (command.name === 'evalsha') {
        vi.advanceTimersByTime(15_000);
        scripts += 1;
      }
      return sendCommand.call(this, command, stream);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    await open(url);
    expect(scripts).toBeGreaterThan(3);
    expect(await client().get(`{${name}}:version`)).toBe('4');
  });

  it('forgets a dead node when its runs were claimed, and finds what that node writes without a new lease', async () => {
    const store = await open(url);
    const { claims } = store;
    const [node, agent_name] = [fresh().run_id, `agent-${fresh().run_id}`];
    const claim = async (): Promise<string[]> => (await claims?.claimRuns('claimer', [agent_name], 1_000)) ?? [];
    const [first, late] = [
      append(fresh({ agent_name }), ['1'], { node }),
      append(fresh({ agent_name }), ['1'], { node }),
    ];
    await claims?.renewLease(node, 60_000);
    await store.commit([first]);
    await claims?.endLease(node);
    expect(await claim()).toContain(first.row.run_id);
    expect(await client().zscore(`{${name}}:nodes`, node)).toBeNull();
    await store.commit([late]);
    expect(await claim()).toContain(late.row.run_id);
  });

  it('lists the runs of all agents that an earlier build has written', async () => {
    const store = await open(url);
    const [one, other] = [append(fresh({ agent_name: 'one' }), ['1']), append(fresh({ agent_name: 'two-*' }), ['1'])];
    await store.commit([one, other]);
    await client().del(`{${name}}:agents`);
    await client().set(`{${name}}:version`, 3);
    const again = await open(url);
    const found = await again.runsByStatusTime({ since: one.row.status_at }, undefined, 1_000);
    expect(found).toEqual(expect.arrayContaining([one.row, other.row]));
    expect(await client().smembers(`{${name}}:agents`)).toEqual(expect.arrayContaining(['one', 'two-*']));
  });

  it('continues with a new connection when its own is killed', async () => {
    const store = await open(url, `connectionName=killed-${name}`);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const redis = client();
    const id = new RegExp(`id=(\\d+).* name=killed-${name} `).exec(String(await redis.client('LIST')))?.[1] ?? '';
    await redis.client('KILL', 'ID', id);
    await eventually(() => store.run(first.row.run_id));
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
  });

  it('continues after Redis has lost its scripts', async () => {
    const store = await open(url);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    await client().script('FLUSH');
    expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
    expect(await store.events(first.row.run_id, 1, 10)).toEqual([{ first: 2, lines: ['2'] }]);
  });

  it('delays commits while its Redis is a read-only replica', async ({ skip, onTestFinished }) => {
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

  it('refuses data of a newer Rivulet and of an earlier build, and does not change it', async () => {
    await open(url);
    const redis = client();
    await redis.set(`{${name}}:version`, 7);
    await expect(openStore(url)).rejects.toThrow('was written by a newer Rivulet (layout 7, this one knows 4)');
    expect(await redis.getset(`{${name}}:version`, 1)).toBe('7');
    await expect(openStore(url)).rejects.toThrow("before Rivulet's first release (layout 1); use another prefix");
    expect(await redis.getset(`{${name}}:version`, 4)).toBe('1');
  });

  it('warns of a Redis that may lose acknowledged commits, and of no other', async ({ skip, onTestFinished }) => {
    const warned = async (durable: boolean, policy: string): Promise<string[]> => {
      const server = (await startRedis({ durable })) ?? skip('there is no redis-server to start');
      onTestFinished(server.stop);
      const redis = new Redis(server.url);
      onTestFinished(() => redis.disconnect());
      await redis.config('SET', 'maxmemory-policy', policy);
      const texts: string[] = [];
      await (await openStore(server.url, (text) => texts.push(text))).close();
      return texts;
    };
    expect(await warned(false, 'allkeys-lru')).toEqual([
      expect.stringContaining('set "appendonly yes"'),
      expect.stringContaining('maxmemory-policy allkeys-lru'),
    ]);
    expect(await warned(true, 'noeviction')).toEqual([]);
  });

  it('rejects the writes of a run whose log or history is damaged, and applies all others', async () => {
    const store = await open(url);
    const [bad, good] = [append(fresh(), ['1']), append(fresh(), ['1'])];
    await store.commit([bad, good]);
    const redis = client();
    await redis.set(`{${name}}:log:${bad.row.run_id}`, 'no stream');
    const more = append(bad.row, ['2'], { history: ['/2'] });
    const damaged = { rejected: expect.any(Error) };
    expect(await store.commit([more, append(good.row, ['2'])])).toEqual([damaged, 'taken']);
    expect(await store.commit([append({ ...good.row, last: 2 }, ['3']), more])).toEqual(['taken', damaged]);
    expect(await store.commit([more])).toEqual([damaged]);
    expect(await store.run(bad.row.run_id)).toEqual(bad.row);
    expect((await store.session(bad.row.session_id))?.history).toEqual([]);
    await redis.set(`{${name}}:history:${bad.row.session_id}`, 'no history');
    const other = append(fresh({ session_id: bad.row.session_id }), ['1'], { history: ['/1'] });
    const last = append({ ...good.row, last: 3 }, ['4']);
    expect(await store.commit([last, other, append(fresh(), ['1'])])).toEqual(['taken', damaged, 'taken']);
    expect(numbered(await store.events(good.row.run_id, 0, 10))).toHaveLength(4);
  });

  it('does the same work in one call, however many runs a removed session has', async ({ skip, onTestFinished }) => {
    // The client fails where it is shown a command of another one before the answer to its own.
    const server = (await startRedis()) ?? skip('there is no redis-server to start');
    onTestFinished(server.stop);
    const store = await open(server.url);
    const monitor = await client(server.url).monitor();
    onTestFinished(() => monitor.disconnect());
    /** Words of the commands of each script. The commands of a script follow it without another between. */
    const scripts: number[] = [];
    let mine = false;
    monitor.on('monitor', (_time: string, words: string[], source: string) => {
      if (source === 'lua') {
        if (mine) scripts.push((scripts.pop() ?? 0) + words.length);
      } else {
        mine = /^eval/i.test(words[0] ?? '');
        if (mine) scripts.push(0);
      }
    });
    const removed = async (runs: number): Promise<number> => {
      const session_id = `removed-${runs}`;
      const writes = Array.from({ length: runs }, () => {
        const row = fresh({ session_id });
        return append(row, ['1'], messageOf(row, 'question'));
      });
      for (let n = 0; n < runs; n += 500) {
        const part = writes.slice(n, n + 500);
        await store.commit(part);
        await store.commit(part.map(({ row }) => end(row, 'completed')));
      }
      await monitored(monitor, client(server.url));
      scripts.length = 0;
      expect(await store.removeSession(session_id)).toBe(true);
      while (await store.sweep({ keys: '' }));
      await monitored(monitor, client(server.url));
      expect(scripts.length).toBeGreaterThan(1);
      return Math.max(...scripts);
    };
    const few = await removed(300);
    expect(await removed(3_000)).toBe(few);
  });

  it('refuses a database that does not exist', async () => {
    const there = new URL(url);
    there.pathname = '/9999';
    await expect(openStore(there.href)).rejects.toThrow(/out of range/);
    await expect(inspectStore(there.href)).rejects.toThrow(/out of range/);
  });
});

describe.skipIf(place === undefined)('a store in Redis with a damaged run', () => {
  const { url = '', name = '' } = place ?? {};
  const kinds: Record<string, (redis: Redis, run: string) => Promise<unknown>> = {
    'its row': (redis, run) => redis.hset(`${run}`, 'row', 'no JSON'),
    'its hash': (redis, run) => redis.unlink(run),
    'its log': (redis, run) => redis.set(run.replace(':run:', ':log:'), 'no stream'),
  };
  for (const [what, damage] of Object.entries(kinds)) {
    damageContract(
      `redis, without ${what}`,
      () => openStore(url),
      async (run_id) => {
        const redis = new Redis(url);
        await damage(redis, `{${name}}:run:${run_id}`);
        await redis.quit();
      },
    );
  }
});
