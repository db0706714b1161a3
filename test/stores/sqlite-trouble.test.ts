import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import { type Database, openDatabase, type Statement, type Value } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { append, end, fresh, linesOf, messageOf } from './writes.ts';

const folder = newFolder(afterAll);
let files = 0;

/** A store, its path, and its connection, with which a test can simulate a full disk. */
function openWithConnection(path = join(folder, `${++files}.db`)): {
  store: SqliteStore;
  path: string;
  connection: Database;
} {
  let connection: Database | undefined;
  const store = new SqliteStore(path, 5_000, (file) => {
    connection = openDatabase(file);
    return connection;
  });
  if (connection === undefined) throw new Error('the store has opened no connection');
  return { store, path, connection };
}

/** Writes to two runs, one that grows and one that changes. Either none or all of them are applied. */
function steps(first: RunRow, second: RunRow): { writes: Write[]; after: [RunRow, RunRow] } {
  const grown = append(first, ['"grown"', `"${'x'.repeat(3_000)}"`], { grown: true });
  const changed = append({ ...second, status: 'awaiting' }, ['"asks"'], {
    journal: ['{}'],
    ...messageOf(second, `question-${second.last}`),
  });
  const made = append(fresh(), ['"made"'], { history: ['/made'] });
  return { writes: [grown, changed, made], after: [grown.row, changed.row] };
}

describe('a file that temporarily cannot be written', () => {
  it('fails commits while another program writes, still reads, and then continues', async () => {
    const { store, path, connection } = openWithConnection();
    // The wait blocks the event loop; SQLite's usual time-out would be five seconds.
    expect(connection.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 50 });
    const [first, second] = [append(fresh(), ['"1"']), append(fresh(), ['"1"'])];
    await store.commit([first, second]);
    const other = openDatabase(path);
    other.exec('BEGIN IMMEDIATE');
    const { writes, after } = steps(first.row, second.row);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(store.commit(writes)).rejects.toThrow('database is locked');
      await expect(store.remove(first.row.run_id)).rejects.toThrow('database is locked');
      await expect(store.sweep({ keys: '' })).rejects.toThrow('database is locked');
      expect(await store.run(first.row.run_id)).toEqual(first.row);
      expect(await linesOf(store, first.row.run_id)).toEqual(['"1"']);
      expect(await store.unfinished(undefined, '', 10)).toEqual([first.row, second.row]);
    }
    other.exec('ROLLBACK');
    other.close();
    expect(await store.commit(writes)).toEqual(['taken', 'taken', 'taken']);
    for (const row of after) expect(await store.run(row.run_id)).toEqual(row);
    expect(await linesOf(store, first.row.run_id)).toHaveLength(3);
    expect(await store.commit(writes)).toEqual(['fenced', 'fenced', 'fenced']);
    await store.close();
  });

  it('reads nothing of a failed commit, also where its rollback fails as well', async () => {
    const failing = new Set<string>();
    const store = new SqliteStore(join(folder, `${++files}.db`), 5_000, (file) => {
      const connection = openDatabase(file);
      const prepare = <Parameters extends readonly Value[], Row>(sql: string): Statement<Parameters, Row> => {
        const statement = connection.prepare<Parameters, Row>(sql);
        return {
          run: (...parameters) => statement.run(...parameters),
          get: (...parameters) => {
            if (failing.delete(sql)) throw Object.assign(new Error('disk I/O error'), { errcode: 10 });
            return statement.get(...parameters);
          },
          all: (...parameters) => statement.all(...parameters),
          iterate: (...parameters) => statement.iterate(...parameters),
        };
      };
      return {
        get isTransaction() {
          return connection.isTransaction;
        },
        prepare,
        exec: (sql) => connection.exec(sql),
        close: () => connection.close(),
      };
    });
    const first = append(fresh(), ['"1"']);
    await store.commit([first]);
    const { session_id } = first.row;
    const reads = {
      runs: () => store.runs({ session_id }, undefined, 10),
      unfinished: () => store.unfinished(undefined, '', 10),
      session: () => store.session(session_id),
      open: () => store.openRuns(),
      events: () => linesOf(store, first.row.run_id),
    };
    for (const read of Object.values(reads)) {
      const before = await read();
      failing.add('COMMIT').add('ROLLBACK');
      const more = append(fresh({ session_id }), ['"more"'], { history: ['/made'] });
      await expect(store.commit([append(first.row, ['"2"'], { grown: true }), more])).rejects.toThrow('I/O');
      expect(await read()).toEqual(before);
    }
    expect(await store.commit([append(first.row, ['"2"'], { grown: true })])).toEqual(['taken']);
    await store.close();
  });

  it('fails a commit without writes while the file takes none', async () => {
    const { store, path, connection } = openWithConnection();
    const log = (): number => statSync(`${path}-wal`).size;
    const before = log();
    expect(await store.commit([])).toEqual([]);
    // It has written, so a full disk would refuse it.
    expect(log()).toBeGreaterThan(before);
    connection.exec('PRAGMA query_only = ON');
    await expect(store.commit([])).rejects.toThrow('readonly');
    expect(await store.unfinished(undefined, '', 10)).toEqual([]);
    connection.exec('PRAGMA query_only = OFF');
    expect(await store.commit([])).toEqual([]);
    await store.close();
  });

  it('fails commits while the disk is full, still reads, and then has no missing or duplicate events', async () => {
    const { store, path, connection } = openWithConnection();
    let [first, second] = [append(fresh(), ['"1"']).row, append(fresh(), ['"1"']).row];
    await store.commit([append({ ...first, last: 0 }, ['"1"']), append({ ...second, last: 0 }, ['"1"'])]);
    for (let round = 0; round < 3; round += 1) {
      const before = await linesOf(store, first.run_id);
      connection.exec('PRAGMA max_page_count = 1');
      const { writes, after } = steps(first, second);
      // The existing pages have room for a few more rows.
      const filler = append(fresh(), [`"${'y'.repeat(200_000)}"`]);
      await expect(store.commit([...writes, filler])).rejects.toThrow('full');
      for (const row of [first, second]) expect(await store.run(row.run_id)).toEqual(row);
      expect(await linesOf(store, first.run_id)).toEqual(before);
      expect(await store.run(filler.row.run_id)).toBeUndefined();
      connection.exec('PRAGMA max_page_count = 1000000');
      expect(await store.commit([...writes, filler])).toEqual(['taken', 'taken', 'taken', 'taken']);
      [first, second] = after;
      expect(await linesOf(store, first.run_id)).toHaveLength(before.length + 2);
      expect(await store.commit([end(filler.row, 'completed')])).toEqual(['taken']);
      second = { ...second, status: 'in-progress' };
      expect(await store.commit([append(second, [])])).toEqual(['taken']);
    }
    const before = await linesOf(store, first.run_id);
    await store.close();
    const again = openWithConnection(path).store;
    expect(await linesOf(again, first.run_id)).toEqual(before);
    expect(await again.run(second.run_id)).toEqual(second);
    await again.close();
  });

  it('is unlocked for the next process although closing it fails', async () => {
    const { store, path, connection } = openWithConnection();
    const first = append(fresh(), ['"1"']);
    await store.commit([first]);
    await store.commit([append(first.row, [`"${'x'.repeat(10_000)}"`], { grown: true })]);
    connection.exec('PRAGMA max_page_count = 1');
    await expect(store.close()).rejects.toThrow('full');
    const again = openWithConnection(path).store;
    expect(await linesOf(again, first.row.run_id)).toHaveLength(2);
    await again.close();
  });
});

it('deletes many runs in each sweep of a few milliseconds', async () => {
  const { store } = openWithConnection();
  const writes = Array.from({ length: 2_000 }, () => append(fresh(), ['1'], { history: [] }));
  await store.commit(writes);
  await store.commit(writes.map(({ row }) => end(row, 'completed')));
  let sweeps = 1;
  while (await store.sweep({ keys: '', runs: '2999-01-01', sessions: '2999-01-01' })) sweeps += 1;
  expect(await store.runs({}, undefined, 10)).toEqual([]);
  // With one run a sweep, there would be 4,000 sweeps; the engine makes 200 a second.
  expect(sweeps).toBeLessThan(1_000);
  await store.close();
});
