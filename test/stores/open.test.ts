import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createServer } from '../../src/index.ts';
import { openStore, storeName } from '../../src/stores/open.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { echo } from '../support/agents.ts';

describe('a URL of a store', () => {
  it.for<[string, RegExp]>([
    ['mongo:', /^there is no store "mongo:"; use memory:, sqlite:PATH, redis:/],
    ['redis', /^there is no store "redis"; use /],
    ['sqlite:/dev/null/x.db', /^the store sqlite:\/dev\/null\/x\.db cannot be opened: E[A-Z]+: /],
    ['redis:localhost', /^the store redis:localhost cannot be opened: a \/\/ has to follow the colon$/],
    ['redis://localhost/data', /its path has to be the number of a database; got "\/data"$/],
    [
      'redis://localhost/0?prefix={a}',
      /its prefix has to be at most 100 characters without spaces or braces; got "{a}"$/,
    ],
    [
      'postgres://localhost/a?schema=My Data',
      /its schema has to be .* small letters, digits and underscores; got "My Data"$/,
    ],
    [
      'postgres://user:50%@localhost:port/a',
      /^the store postgres:\/\/user:\*\*\*@localhost:port\/a cannot be opened: it is not a URL/,
    ],
    [
      'redis://user:secret@127.0.0.1:1/0',
      /^the store redis:\/\/user:\*\*\*@127.0.0.1:1\/0 cannot be opened: connect ECONNREFUSED 127.0.0.1:1$/,
    ],
    [
      'postgres://user:secret@127.0.0.1:1/a',
      /^the store postgres:\/\/user:\*\*\*@127.0.0.1:1\/a cannot be opened: connect ECONNREFUSED 127.0.0.1:1$/,
    ],
    ['postgres://user:secret@localhost:1/a', /ECONNREFUSED/],
  ])('that cannot be opened, %s, says why', async ([url, says]) => {
    await expect(openStore(url)).rejects.toThrow(says);
  });

  it.each([
    ['postgres://me:se@cret@host/db?schema=a', 'postgres://me:***@host/db?schema=a'],
    ['postgres://me:se/cret@host/db', 'postgres://me:***@host/db'],
    ['postgres://host/db?user=me&password=secret&schema=a', 'postgres://host/db?user=me&password=***&schema=a'],
    ['postgres://host/db?sslpassword=secret&a=b', 'postgres://host/db?sslpassword=***&a=b'],
    ['redis://:secret@host:6379/1', 'redis://:***@host:6379/1'],
    ['redis://host:6379/1', 'redis://host:6379/1'],
    ['sqlite:./data/rivulet.db', 'sqlite:./data/rivulet.db'],
  ])('is shown without its password: %s', (url, shown) => {
    expect(storeName(url)).toBe(shown);
  });
});

it('closes its store when a server does not start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-open-'));
  const path = join(folder, 'rivulet.db');
  try {
    await expect(createServer({ agents: [echo, echo], store: `sqlite:${path}` })).rejects.toThrow('is already used by');
    await new SqliteStore(path, 0).close();
    const app = await createServer({ agents: [echo], store: `sqlite:${path}` });
    await app.ready();
    await app.close();
    await new SqliteStore(path, 0).close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
