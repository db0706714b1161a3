import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Write } from '../../src/core/ports/run-store.ts';
import { eventually } from '../support/eventually.ts';
import { OutageProxy } from '../support/outage-proxy.ts';
import { postgresPlace, type Started, startRedis } from '../support/servers.ts';
import { closedAfterEach } from './auto-close.ts';
import { append, fresh, messageOf, numbered } from './writes.ts';

/** Two writes that change every part of a store. */
function pair(): [Write, Write] {
  const writes = [fresh(), fresh()].map((row) =>
    append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') }),
  );
  const [one, other] = writes;
  if (!one || !other) throw new Error('two rows make two writes');
  return [one, other];
}

describe('a store in a Redis that refuses to write', () => {
  const { open, closeAfter } = closedAfterEach();
  let server: Started | undefined;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  const client = (url: string): Redis => {
    const redis = new Redis(url);
    closeAfter({ close: () => redis.quit() });
    return redis;
  };

  const refusals: Record<string, (redis: Redis) => Promise<() => Promise<unknown>>> = {
    NOREPLICAS: async (redis) => {
      await redis.config('SET', 'min-replicas-to-write', '1');
      return () => redis.config('SET', 'min-replicas-to-write', '0');
    },
    OOM: async (redis) => {
      await redis.config('SET', 'maxmemory', '1');
      return () => redis.config('SET', 'maxmemory', '0');
    },
    MISCONF: async (redis) => {
      const [, folder = ''] = (await redis.config('GET', 'dir')) as string[];
      await redis.config('SET', 'save', '3600 1');
      // A folder in the place of the file makes the snapshot fail.
      mkdirSync(join(folder, 'dump.rdb'));
      await redis.bgsave();
      await expect.poll(() => redis.info('persistence')).toMatch('rdb_last_bgsave_status:err');
      return () => redis.config('SET', 'save', '');
    },
    BUSY: async (redis) => {
      await redis.config('SET', 'lua-time-limit', '1');
      const other = redis.duplicate();
      closeAfter({ close: () => other.quit() });
      const endless = other.eval('while true do end', 0).catch(() => {});
      await eventually(() => expect(redis.ping()).rejects.toThrow('BUSY'));
      return async () => {
        await redis.script('KILL');
        await endless;
      };
    },
  };

  it.for(Object.entries(refusals))(
    'fails a commit without applying it, and accepts it later: %s',
    async ([name, refuse], { skip }) => {
      const { url } = server ?? skip('there is no redis-server to start');
      const redis = client(url);
      const store = await open(url);
      const running = append(fresh(), ['1']);
      await store.commit([running]);
      const writes = [append(running.row, ['2'], { grown: true }), ...pair()];
      const allow = await refuse(redis);
      await expect(store.commit(writes)).rejects.toThrow(name);
      await allow();
      expect(await store.run(running.row.run_id)).toEqual(running.row);
      expect(numbered(await store.events(running.row.run_id, 0, 10))).toHaveLength(1);
      expect(await store.commit(writes)).toEqual(['taken', 'taken', 'taken']);
    },
  );

  it('resolves a commit whose answer was lost, although memory is full by then', async ({ skip }) => {
    const { url } = server ?? skip('there is no redis-server to start');
    const redis = client(url);
    const proxy = closeAfter(await OutageProxy.open(url));
    const store = await open(proxy.url);
    const first = append(fresh(), ['1']);
    await store.commit([first]);
    const lost = proxy.cutAnswerTo('evalsha');
    const commit = store.commit([append(first.row, ['2'], { history: ['/2'] })]);
    await lost;
    await redis.config('SET', 'maxmemory', '1');
    expect(await commit).toEqual(['taken']);
    await redis.config('SET', 'maxmemory', '0');
    expect((await store.session(first.row.session_id))?.history).toEqual(['/2']);
  });
});

const place = await postgresPlace();
describe.skipIf(place === undefined)('a store in a PostgreSQL that refuses to write', () => {
  const { url = '', name: schema = '' } = place ?? {};
  const { open, closeAfter } = closedAfterEach();
  let admin: Client;
  beforeAll(async () => {
    admin = new Client(url);
    await admin.connect();
  });
  afterAll(async () => {
    await admin.end();
    await place?.remove();
  });

  /** Makes the server raise this error for every batch of events above that length. */
  const saying = async (code: string, longer = 0): Promise<() => Promise<unknown>> => {
    await admin.query(`
      CREATE OR REPLACE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'said by the test' USING ERRCODE = '${code}'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON ${schema}.events FOR EACH ROW WHEN (length(NEW.body) > ${longer})
        EXECUTE FUNCTION ${schema}.refuse()`);
    return () => admin.query(`DROP TRIGGER refuse ON ${schema}.events`);
  };

  it.for([
    ['a full disk', '53100'],
    ['no memory', '53200'],
    ['a statement that took too long', '57014'],
    ['a failure to read', '58030'],
    ['an error that has no name', 'XX000'],
  ])('fails a commit without applying it, and accepts it later: %s', async ([, code = '']) => {
    const store = await open(url);
    const writes = pair();
    const allow = await saying(code);
    await expect(store.commit(writes)).rejects.toThrow('said by the test');
    await allow();
    expect(await store.run(writes[0].row.run_id)).toBeUndefined();
    expect(await store.commit(writes)).toEqual(['taken', 'taken']);
  });

  it('fails a commit while the server refuses the user, and accepts it later', async () => {
    const role = `${schema}_role`;
    await admin.query(`CREATE ROLE ${role} LOGIN SUPERUSER`);
    closeAfter({ close: () => admin.query(`DROP ROLE ${role}`) });
    const theirs = new URL(url);
    theirs.username = role;
    const store = await open(theirs.href);
    const writes = pair();
    expect(await store.commit([append(fresh(), ['1'])])).toEqual(['taken']);
    await admin.query(`ALTER ROLE ${role} NOLOGIN`);
    // Waits until all former connections are closed, and the store has noticed.
    const end = 'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1';
    const refused = async (): Promise<void> => {
      await admin.query(end, [role]);
      await expect(store.run('any')).rejects.toThrow('not permitted to log in');
    };
    await eventually(refused);
    await expect(store.commit(writes)).rejects.toThrow('not permitted to log in');
    await admin.query(`ALTER ROLE ${role} LOGIN`);
    expect(await store.commit(writes)).toEqual(['taken', 'taken']);
  });

  it('rejects a large write by itself when it takes too long, and continues', async () => {
    const store = await open(url);
    const running = append(fresh(), ['1']);
    await store.commit([running]);
    const allow = await saying('57014', 5_000_000);
    const [outcome] = await store.commit([append(fresh(), [`"${'x'.repeat(6_000_000)}"`])]);
    expect(outcome).toMatchObject({ rejected: { code: '57014' } });
    expect(await store.commit([append(running.row, ['2'])])).toEqual(['taken']);
    await allow();
  });
});
