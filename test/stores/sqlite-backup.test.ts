import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { backupFile, restoreFile } from '../../src/stores/sqlite/backup-file.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { append, fresh, linesOf } from './writes.ts';

const folder = newFolder(afterAll);
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

/** A store with one run, whose newest events are in the commit log only; the caller closes it. */
async function storeWith(run_id: string) {
  const path = newPath();
  const store = new SqliteStore(path, 0);
  const first = append(fresh({ run_id }), ['1']);
  await store.commit([first]);
  const second = append(first.row, ['2', '3'], { grown: true });
  await store.commit([second]);
  return { path, store, row: second.row };
}

/** The lines of a run, as a store that opens the file reads them. */
async function readBack(path: string, run_id: string): Promise<string[]> {
  const store = new SqliteStore(path, 0);
  try {
    return await linesOf(store, run_id);
  } finally {
    await store.close();
  }
}
const complete = ['1', '2', '3'];

describe('a backup of SQLite', () => {
  it('has every commit of a store that is open, and is readable by its owner only', async () => {
    const { path, store, row } = await storeWith('a');
    const target = newPath();
    expect(backupFile(path, target)).toEqual({ bytes: statSync(target).size, version: expect.any(Number) });
    expect(statSync(target).mode & 0o777).toBe(0o600);
    await store.commit([append(row, ['4'], { grown: true })]);
    await store.close();
    expect(await readBack(target, 'a')).toEqual(complete);
  });

  it('has every commit of a store whose process was killed', async () => {
    const { path, store } = await storeWith('a');
    const killed = newPath();
    for (const end of ['', '-wal']) writeFileSync(killed + end, readFileSync(path + end));
    await store.close();
    const target = newPath();
    backupFile(killed, target);
    expect(await readBack(target, 'a')).toEqual(complete);
  });

  it('is a plain copy of the file after the store was closed', async () => {
    const { path, store } = await storeWith('a');
    await store.close();
    const target = newPath();
    writeFileSync(target, readFileSync(path));
    expect(await readBack(target, 'a')).toEqual(complete);
  });

  it('overwrites no file, and leaves none after an error', async () => {
    const { path, store } = await storeWith('a');
    expect(() => backupFile(path, path)).toThrow(`${path} exists already`);
    expect(() => backupFile(path, `${path}.none/a.db`)).toThrow(
      `${path}.none/a.db: there is no folder ${path}.none; make it, or give another name`,
    );
    await store.close();
    const text = newPath();
    writeFileSync(text, 'no database '.repeat(1000));
    const target = newPath();
    expect(() => backupFile(text, target)).toThrow(`${text} cannot be copied: file is not a database`);
    expect(readdirSync(folder).filter((name) => target.endsWith(name) || name.endsWith('.partial'))).toEqual([]);
  });

  it('refuses a file that is damaged', async () => {
    const { path, store } = await storeWith('a');
    const damaged = newPath();
    backupFile(path, damaged);
    await store.close();
    const bytes = readFileSync(damaged);
    bytes.fill(7, 4096 * 3, 4096 * 5);
    writeFileSync(damaged, bytes);
    expect(() => backupFile(damaged, newPath())).toThrow(/damaged|malformed/);
  });
});

describe('a restore of SQLite', () => {
  it('replaces the file, and keeps the replaced one with its last commits', async () => {
    const first = await storeWith('a');
    await first.store.close();
    const backup = newPath();
    backupFile(first.path, backup);
    const { path, store } = await storeWith('b');
    await store.close();
    const keep = newPath();
    expect(restoreFile(backup, path, keep)).toMatchObject({ kept: keep });
    expect(await readBack(path, 'a')).toEqual(complete);
    expect(await readBack(keep, 'b')).toEqual(complete);
    expect(existsSync(`${path}.restoring`)).toBe(false);
  });

  it('makes the file where there is none', async () => {
    const { path, store } = await storeWith('a');
    await store.close();
    const target = newPath();
    expect(restoreFile(path, target, newPath()).kept).toBe(undefined);
    expect(await readBack(target, 'a')).toEqual(complete);
  });

  it('applies no log of a damaged file to the restored one', async () => {
    const { path, store } = await storeWith('a');
    await store.close();
    const broken = newPath();
    writeFileSync(broken, 'no database '.repeat(1000));
    writeFileSync(`${broken}-wal`, 'no log');
    const keep = newPath();
    restoreFile(path, broken, keep);
    expect(await readBack(broken, 'a')).toEqual(complete);
    expect(readFileSync(`${keep}-wal`, 'utf8')).toBe('no log');
  });

  it('refuses a backup of a newer Rivulet, another database and a missing file, and changes nothing', async () => {
    const { path, store } = await storeWith('a');
    await store.close();
    const newer = newPath();
    backupFile(path, newer);
    const db = openDatabase(newer);
    db.exec('PRAGMA user_version = 99');
    db.close();
    expect(() => restoreFile(newer, path, newPath())).toThrow('was written by a newer Rivulet (version 99');
    const other = newPath();
    const foreign = openDatabase(other);
    foreign.exec('CREATE TABLE t (x)');
    foreign.close();
    expect(() => restoreFile(other, path, newPath())).toThrow(`${other} is no store of Rivulet`);
    expect(() => restoreFile(newPath(), path, newPath())).toThrow('there is no such file');
    expect(await readBack(path, 'a')).toEqual(complete);
  });
});
