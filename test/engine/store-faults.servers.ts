import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/stores/open.ts';
import { methods } from '../support/faulty-store.ts';
import { newFolder } from '../support/folder.ts';
import { type Place, postgresPlace, redisPlace } from '../support/servers.ts';
import { countCalls, failEachCall } from '../support/store-faults.ts';

const folder = newFolder(afterAll);

let files = 0;
const stores: Record<string, () => Promise<() => string>> = {
  memory: async () => () => 'memory:',
  sqlite: async () => () => {
    files += 1;
    return `sqlite:${join(folder, `${files}.db`)}`;
  },
  redis: () => apart(redisPlace),
  postgres: () => apart(postgresPlace),
};

/** A new location for each store that is opened, so that all of them are empty. */
async function apart(find: () => Promise<Place | undefined>): Promise<() => string> {
  const place = await find();
  if (place === undefined) throw new Error('there is no server for this store');
  const names: string[] = [];
  afterAll(() => place.remove());
  return () => {
    names.push(`${place.name}_${names.length}`);
    return place.url.replace(place.name, names.at(-1) ?? '');
  };
}

describe.each(Object.keys(stores))('each call of %s that fails once', (name) => {
  it('leaves no run unfinished, and loses no event that a reader saw', { timeout: 600_000 }, async () => {
    const next = await stores[name]?.();
    if (next === undefined) throw new Error(`there is no store ${name}`);
    const open = () => openStore(next());
    const calls = await countCalls(open);
    for (const method of methods) expect([method, await failEachCall(open, method, calls)]).not.toEqual([method, 0]);
  });
});
