import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunRow, Store, Write } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory.ts';
import { SqliteStore } from '../../src/stores/sqlite.ts';
import { migrate } from '../../src/stores/sqlite-schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

/** What a disk has at this moment, as after a kill. */
function killed(path: string): string {
  const copy = newPath();
  for (const end of ['', '-wal']) if (existsSync(path + end)) cpSync(path + end, copy + end);
  return copy;
}

const newRow = (run_id: string): RunRow => ({
  run_id,
  agent_name: 'a',
  session_id: 's',
  owner: null,
  epoch: 1,
  status: 'in-progress',
  created_at: '2026-01-01T00:00:00.000Z',
  finished_at: null,
  tier: 'durable',
  attempts: 0,
  queued_at: null,
  due: null,
  on_disconnect: 'continue',
  last: 0,
  snapshot: 1,
});
const grow = (row: RunRow, lines: string[], more: Partial<Write> = {}): Write => ({
  row: { ...row, last: row.last + lines.length },
  expect: row.last,
  lines,
  ...(row.last === 0 ? { input: [] } : { grown: true }),
  ...more,
});

/** What a file of the first version has: two runs of a session, their messages, and a state that none of them made. */
const firstVersion = `
  INSERT INTO sessions VALUES ('s', NULL, '/resources/x', '2026-01-01T00:00:00.000Z');
  INSERT INTO runs SELECT value, 'a', 's', NULL, 1, 'failed', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z',
    'durable', 0, NULL, NULL, 'continue', iif(value = 'r', 3, 1), 1, '[]' FROM json_each('["r", "q"]');
  INSERT INTO events VALUES ('r', 3, 2, '2' || char(10) || '3'), ('q', 1, 1, '1'), ('r', 1, 1, '1');
  INSERT INTO journal (run_id, body) VALUES ('r', 'j');
  INSERT INTO history (session_id, url) VALUES ('s', '/resources/z'), ('s', 'https://a/b'), ('s', '/resources/y');
  INSERT INTO resources VALUES ('x', 's', NULL, 'a/b', '1'), ('y', 's', 'q', 'a/b', 'said'),
    ('z', 's', 'r', 'a/b', ''), ('w', 's', 'r', 'a/b', '');
`;

/** All that a store says of some runs. */
async function told(store: Store, ids: readonly string[]): Promise<unknown> {
  return Promise.all(
    ids.map(async (id) => {
      const row = await store.run(id);
      const lines: string[] = [];
      for (let after = 0; after < (row?.last ?? 0); after = lines.length) {
        const [batch] = await store.events(id, after, 7);
        lines.push(...(batch?.lines.slice(after + 1 - (batch?.first ?? 0)) ?? []));
        if (batch === undefined) throw new Error(`no events after ${after}, where there are ${row?.last}`);
      }
      return { row, lines, journal: await store.journal(id) };
    }),
  );
}

describe('a file', () => {
  it('belongs to one process, and says so to the next', async () => {
    const path = newPath();
    const first = new SqliteStore(path);
    expect(() => new SqliteStore(path, 0)).toThrow(`${path} is in use by another process`);
    await first.close();
    await new SqliteStore(path, 0).close();
  });

  it('can be read by others while it is in use', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    await store.commit([grow(newRow('r'), ['{}'])]);
    const other = new Database(path, { readonly: true });
    expect(other.prepare('SELECT run_id FROM runs').all()).toEqual([{ run_id: 'r' }]);
    other.close();
    await store.close();
  });

  it('has all that was committed after a kill, and none of a commit that failed', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const [a, b] = [newRow('a'), newRow('b')];
    const resource = { resource_id: 'x', session_id: 's', run_id: null, content_type: 'text/plain', body: '' };
    await store.commit([grow(a, ['1']), grow(b, ['1'], { resources: [resource] })]);
    await store.commit([grow({ ...a, last: 1 }, ['2', '3'], { journal: ['j'] })]);
    const broken = grow({ ...b, last: 1 }, ['2'], { resources: [resource] });
    await expect(store.commit([grow({ ...a, last: 3 }, ['4']), broken])).rejects.toThrow('UNIQUE');
    const before = await told(store, ['a', 'b']);
    expect(before).toMatchObject([{ row: { last: 3 }, lines: ['1', '2', '3'], journal: ['j'] }, { lines: ['1'] }]);
    expect(await store.commit([grow({ ...a, last: 3 }, ['four'])])).toEqual(['taken']);
    const after = await told(store, ['a', 'b']);
    const copy = new SqliteStore(killed(path));
    expect(await told(copy, ['a', 'b'])).toEqual(after);
    await Promise.all([store.close(), copy.close()]);
  });

  it('of the first version is brought to the newest, and loses nothing', async () => {
    const path = newPath();
    const old = new Database(path);
    migrate(old, 1);
    old.exec(firstVersion);
    old.close();
    const store = new SqliteStore(path);
    const ended = { status: 'failed', finished_at: '2026-01-01T00:00:01.000Z' } as const;
    expect(await told(store, ['r', 'q'])).toEqual([
      { row: { ...newRow('r'), ...ended, last: 3 }, lines: ['1', '2', '3'], journal: ['j'] },
      { row: { ...newRow('q'), ...ended, last: 1 }, lines: ['1'], journal: [] },
    ]);
    expect(await store.runs({ status: 'failed' }, undefined, 9)).toHaveLength(2);
    expect((await store.session('s'))?.history).toEqual(['/resources/z', 'https://a/b', '/resources/y']);
    await store.commit([grow(newRow('new'), ['1'], { history: ['/resources/y', 'https://a/c'] })]);
    await store.remove('r');
    expect((await store.session('s'))?.history).toEqual(['https://a/b', '/resources/y', 'https://a/c']);
    for (const id of ['w', 'z']) expect((await store.resources([id]))[0]).toBeUndefined();
    expect((await store.resources(['y']))[0]).toMatchObject({ run_id: 'q', body: 'said' });
    await store.removeSession('s');
    for (const id of ['x', 'y']) expect((await store.resources([id]))[0]).toBeUndefined();
    await store.close();
  });

  it('of a newer version is left as it is, and says so', () => {
    const path = newPath();
    const newer = new Database(path);
    newer.pragma('user_version = 99');
    newer.close();
    expect(() => new SqliteStore(path)).toThrow('was written by a newer Rivulet (version 99, this one knows 2)');
  });

  it('keeps its log of commits short, however long runs go on and however slow some are', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const slow = Array.from({ length: 50 }, (_, n) => newRow(`slow${n}`));
    await store.commit([...slow, newRow('quick')].map((row) => grow(row, ['{}'])));
    await store.commit(slow.map((row) => grow({ ...row, last: 1 }, ['{"n":2}'])));
    const other = new Database(path, { readonly: true });
    const rows = other.prepare<[], { count: number }>('SELECT count(*) AS count FROM commits');
    let most = 0;
    for (let last = 1; last < 10_000; last += 1) {
      await store.commit([grow({ ...newRow('quick'), last }, [`{"n":${last}}`])]);
      if (last % 100 === 0) most = Math.max(most, rows.get()?.count ?? 0);
    }
    expect(most).toBeGreaterThan(1000);
    expect(most).toBeLessThan(5000);
    expect(await told(store, ['slow7', 'quick'])).toMatchObject([{ row: { last: 2 } }, { row: { last: 10_000 } }]);
    await store.close();
    expect(rows.get()).toEqual({ count: 0 });
    other.close();
  });

  it('says what a store in memory says, whatever is written and whenever it is killed', async () => {
    const ids = ['a', 'b', 'c'];
    const run = fc.constantFrom(...ids);
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ do: fc.constant('grow' as const), run, count: fc.integer({ min: 1, max: 9 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constantFrom('journal', 'change', 'take', 'stale', 'long', 'end'), run }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('kill', 'reopen', 'fail'), run }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        let path = newPath();
        let store = new SqliteStore(path);
        const model = new MemoryStore();
        for (const one of steps) {
          const row = (await model.run(one.run)) ?? newRow(one.run);
          const text = `${one.do} ${row.last}`;
          const write = writeOf(one.do, row, 'count' in one ? one.count : 1, text);
          if (one.do === 'kill' || one.do === 'reopen') {
            if (one.do === 'kill') path = killed(path);
            await store.close();
            store = new SqliteStore(path);
          } else if (one.do === 'fail') {
            const twice = { resource_id: 'x', session_id: 's', run_id: null, content_type: 'a/b', body: '' };
            await expect(
              store.commit([write, grow(newRow('never'), ['1'], { resources: [twice, twice] })]),
            ).rejects.toThrow();
          } else {
            expect(await store.commit([write])).toEqual(await model.commit([write]));
          }
          expect(await told(store, ids)).toEqual(await told(model, ids));
        }
        await store.close();
      }),
      { numRuns: Number(process.env.FC_RUNS ?? 40) },
    );
  });
});

function writeOf(kind: string, row: RunRow, count: number, text: string): Write {
  const lines = Array.from({ length: count }, (_, n) => JSON.stringify({ text, n }));
  if (kind === 'journal') return grow(row, lines, { journal: [`${text} is due`] });
  if (kind === 'long') return grow(row, ['x'.repeat(20_000)]);
  if (kind === 'stale') return grow({ ...row, last: row.last + 1, epoch: row.epoch }, lines, { grown: true });
  if (kind === 'fail') return grow(row, lines, { grown: false });
  const changed = grow(row, lines, { grown: false });
  if (kind === 'take') return { ...changed, row: { ...changed.row, epoch: row.epoch + 1 }, from: row.epoch };
  if (kind === 'change') return { ...changed, row: { ...changed.row, status: 'awaiting' } };
  if (kind === 'end') return { ...changed, row: { ...changed.row, status: 'completed', finished_at: row.created_at } };
  return grow(row, lines);
}
