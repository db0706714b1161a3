import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { queueSchema } from '../../src/dispatchers/bullmq/postgres-check.ts';
import { openDispatcher } from '../../src/dispatchers/open.ts';
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { TestNode } from './test-node.ts';

const options = { slots: 1, lease: 1_000, onError: () => {} };

describe('a dispatcher for the URL of a store', () => {
  it.for(['memory:', 'sqlite:./rivulet.db'])('is local for %s', async (url) => {
    expect((await openDispatcher(url, options)).shared).toBe(false);
  });

  it.for(['redis://user:secret@127.0.0.1:1/0', 'postgres://user:secret@127.0.0.1:1/a'])(
    'says why it cannot be opened: %s',
    async (url) => {
      const error: unknown = await openDispatcher(url, options).catch((reason: unknown) => reason);
      expect(String(error)).toMatch(/the queue beside the store cannot be opened: connect ECONNREFUSED/);
      expect(String(error)).not.toContain('secret');
    },
  );

  it.for([
    ['lease', 0],
    ['lease', 99],
    ['lease', 1_000.5],
    ['lease', 2 ** 31],
    ['lease', Number.NaN],
    ['lease', Number.POSITIVE_INFINITY],
    ['slots', 0],
    ['slots', 1.5],
  ] as const)('refuses a %s of %d before it connects', async ([name, value]) => {
    for (const url of ['redis://127.0.0.1:1/0', 'postgres://127.0.0.1:1/a']) {
      await expect(openDispatcher(url, { ...options, [name]: value })).rejects.toThrow(
        /^the queue beside the store cannot be opened: (a lease|the number of slots) has to be a whole number .*; got /,
      );
    }
  });

  it('loads no database client for a local store, and nothing else that few servers need', async () => {
    const script = `
      const { openDispatcher } = await import('./dist/dispatchers/open.js');
      await import('./dist/index.js');
      await openDispatcher('memory:', { slots: 1, lease: 1000, onError() {} });
      await openDispatcher('sqlite:a.db', { slots: 1, lease: 1000, onError() {} });
      const { createRequire } = await import('node:module');
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      console.log(loaded.length > 0, loaded.filter((one) => /node_modules\\/(bullmq|ioredis|pg|rate-limiter-flexible|ajv-draft-04)\\//.test(one)).length);`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('true 0\n');
  });
});

const place = await postgresPlace();
describe.skipIf(place === undefined)('a queue in PostgreSQL', () => {
  afterAll(() => place?.remove());
  const { url = '', name = '' } = place ?? {};

  it('is created once when several nodes open it at the same time', async () => {
    const nodes = await Promise.all([TestNode.open(url), TestNode.open(url), TestNode.open(url)]);
    await nodes[0].offer('a');
    (await Promise.race(nodes.map((node) => node.taken('a')))).end();
  });

  it('needs no permission to create schemas where it exists', async () => {
    const client = new Client(url.replace(/[?&]schema=[^&]*/, ''));
    await client.connect();
    const role = `${name}_role`;
    const queue = queueSchema(name);
    await client.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${queue} TO ${role};
      GRANT ALL ON ALL TABLES IN SCHEMA ${queue} TO ${role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA ${queue} TO ${role}`);
    try {
      const theirs = new URL(url);
      theirs.username = role;
      const node = await TestNode.open(theirs.href);
      await node.offer('b');
      (await node.taken('b')).end();
      await node.close();
    } finally {
      await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
      await client.end();
    }
  });

  it('keeps the connection options of the URL', async () => {
    const mine = new URL(url);
    mine.searchParams.set('options', '-c geqo=off');
    const node = await TestNode.open(mine.href);
    await node.offer('c');
    (await node.taken('c')).end();
  });

  it('has a schema of its own, also beside one with the longest name', () => {
    expect(queueSchema('rivulet')).toBe('rivulet_queue');
    const long = [`${'a'.repeat(62)}b`, `${'a'.repeat(62)}c`, 'a'.repeat(58), 'a'.repeat(57)].map(queueSchema);
    expect(new Set(long).size).toBe(4);
    for (const one of long) expect(one).toMatch(/^[a-z0-9_]{63}$/);
  });
});

const redis = await redisPlace();
describe.skipIf(redis === undefined)('a queue in Redis', () => {
  afterAll(() => redis?.remove());

  it('is kept in the database that the URL names', async () => {
    const url = new URL(redis?.url ?? '');
    const [zero, five] = [new URL(url), new URL(url)];
    zero.pathname = '/0';
    five.pathname = '/5';
    const [one, other] = [await TestNode.open(zero.href), await TestNode.open(five.href)];
    await other.offer('a');
    (await other.taken('a')).end();
    await other.isSettled('a');
    expect(one.runs).toEqual([]);
    await other.close();
    const client = new Redis(five.href);
    const names = await client.keys(`{${redis?.name}}*`);
    expect(names.length).toBeGreaterThan(0);
    await client.unlink(names);
    await client.quit();
  });
});
