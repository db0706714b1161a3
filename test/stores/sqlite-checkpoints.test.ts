import { copyFileSync, existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, expect, it } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { append, end, fresh } from './writes.ts';

// The thread runs compiled code. From the sources it cannot start, so there a store has SQLite's own checkpoints.
const compiled = pathToFileURL('dist/stores/sqlite/sqlite-store.js').href;
const { SqliteStore: CompiledStore } = (await import(compiled)) as { SqliteStore: typeof SqliteStore };

const folder = newFolder(afterAll);
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

const stores: Store[] = [];
const opened = (store: Store): Store => {
  stores.push(store);
  return store;
};
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));

/** Commits short runs, two commits each. */
async function commitRuns(store: Store, count: number, owner?: string): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const first = append(fresh({ owner: owner ?? null, session_id: `${owner ?? ''} s${n}` }), ['1']);
    expect(await store.commit([first])).toEqual(['taken']);
    expect(await store.commit([end(first.row, 'completed')])).toEqual(['taken']);
    ids.push(first.row.run_id);
  }
  return ids;
}

/** The runs in the file alone, without its write-ahead log. */
function runsInFile(path: string): number {
  const copy = newPath();
  copyFileSync(path, copy);
  const db = openDatabase(copy);
  try {
    return db.prepare<[], { count: number }>('SELECT count(*) AS count FROM runs').get()?.count ?? 0;
  } catch {
    return 0; // Copied amid a checkpoint, or before the first one.
  } finally {
    db.close();
  }
}

it('copies commits into the file, before the log has a thousand pages', async () => {
  const path = newPath();
  const store = opened(new CompiledStore(path));
  await commitRuns(store, 30);
  // Commits that write nothing. They are what the thread counts, and what it begins with once it has started.
  const isCopied = async (): Promise<boolean> => {
    for (let n = 0; n < 100; n += 1) await store.compareAndSet('unknown', 'targets', null, null);
    return runsInFile(path) === 30;
  };
  await expect.poll(isCopied, { timeout: 20_000 }).toBe(true);
  expect(statSync(`${path}-wal`).size).toBeLessThan(1_000 * 4_096);
});

it('keeps the log small, with the thread and without', async () => {
  for (const Opened of [CompiledStore, SqliteStore]) {
    const path = newPath();
    const store = new Opened(path);
    const ids = await commitRuns(store, 600);
    const pages = statSync(`${path}-wal`).size / 4_096;
    expect(pages).toBeLessThan(Opened === SqliteStore ? 1_100 : 16_100);
    await store.close();
    const again = opened(new Opened(path));
    for (const id of ids) expect(await again.run(id)).toMatchObject({ status: 'completed', last: 2 });
  }
});

it('erases an owner while the thread is copying', async () => {
  const path = newPath();
  const store = opened(new CompiledStore(path));
  for (let round = 0; round < 5; round += 1) {
    await commitRuns(store, 64, 'key:erased');
    await expect(store.removeOwner('key:erased')).resolves.toBeUndefined();
    expect(statSync(`${path}-wal`).size).toBe(0);
  }
});

it('does not make a deleted file anew', async () => {
  const path = newPath();
  const store = new CompiledStore(path);
  rmSync(path);
  for (let n = 0; n < 300; n += 1) await store.compareAndSet('unknown', 'targets', null, null);
  await store.close();
  expect(existsSync(path)).toBe(false);
});
