import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { schemaVersion } from '../../src/stores/postgres/schema.ts';
import { layout } from '../../src/stores/redis/layout.ts';
import { fileVersion } from '../../src/stores/sqlite/schema.ts';

it('docs/upgrade.md has the versions of the stores', () => {
  const page = readFileSync('docs/upgrade.md', 'utf8');
  const found = Object.fromEntries(
    [...page.matchAll(/^\| (SQLite|PostgreSQL|Redis) +\| (\d+)/gm)].map(([, store = '', version]) => [
      store,
      Number(version),
    ]),
  );
  expect(found).toEqual({ SQLite: fileVersion, PostgreSQL: schemaVersion, Redis: layout });
});
