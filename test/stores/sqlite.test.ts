import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunRow, Store, Write } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { fileVersion } from '../../src/stores/sqlite/schema.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { again, at, delivery, webhooks } from './contract-outbox.ts';
import { copyAfterKill, fresh } from './writes.ts';

const folder = newFolder(afterAll);
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

const newRow = (run_id: string): RunRow =>
  fresh({ run_id, agent_name: 'a', session_id: 's', status: 'in-progress', tier: 'durable', snapshot: 1 });
const grow = (row: RunRow, lines: string[], more: Partial<Write> = {}): Write => ({
  row,
  expect: row.last,
  lines,
  ...(row.last === 0 ? { input: [] } : { grown: true }),
  ...more,
});

/** Everything that a store returns for some runs. */
async function stateOf(store: Store, ids: readonly string[]): Promise<unknown> {
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
  it('belongs to one process; the next one gets an error', async () => {
    const path = newPath();
    const first = new SqliteStore(path);
    expect(() => new SqliteStore(path, 0)).toThrow(`${path} is in use by another process`);
    await first.close();
    await new SqliteStore(path, 0).close();
  });

  it('is made for its owner alone, with the files beside it and its folder', async () => {
    const before = process.umask(0);
    const parent = join(folder, 'made', 'deep');
    const store = new SqliteStore(join(parent, 'a.db'));
    await store.commit([{ row: newRow('a'), expect: 0, lines: ['{}'], input: [] }]);
    const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    const names = readdirSync(parent);
    expect(names).toEqual(expect.arrayContaining(['a.db', 'a.db-lock', 'a.db-shm', 'a.db-wal']));
    for (const name of names) expect([name, modeOf(join(parent, name))]).toEqual([name, '600']);
    expect([modeOf(parent), modeOf(join(folder, 'made'))]).toEqual(['700', '700']);
    await store.close();
    process.umask(before);
  });

  it('belongs to one process, also through links', async () => {
    const path = newPath();
    const first = new SqliteStore(path);
    const link = newPath();
    symlinkSync(path, link);
    expect(() => new SqliteStore(link, 0)).toThrow('is in use by another process');
    await first.close();
    await new SqliteStore(link, 0).close();
  });

  it('accepts no write from a process that has lost its lock, and no event twice', async () => {
    const path = newPath();
    const first = new SqliteStore(path);
    await first.commit([grow(newRow('r'), ['1', '2'])]);
    // A POSIX lock can be lost in several ways, for example with its file.
    renameSync(`${path}-lock`, `${path}-lost`);
    const second = new SqliteStore(path, 0);
    const third = grow({ ...newRow('r'), last: 2 }, ['3']);
    expect(await second.commit([third])).toEqual(['taken']);
    const says = 'was opened by another process, so this one may not write to it any more';
    await expect(first.commit([third])).rejects.toThrow(says);
    await expect(first.commit([grow(newRow('q'), ['1'])])).rejects.toThrow(says);
    await expect(first.remove('r')).rejects.toThrow(says);
    await expect(first.sweep({ keys: '' })).rejects.toThrow(says);
    await expect(first.close()).rejects.toThrow(says);
    expect(await stateOf(second, ['r', 'q'])).toMatchObject([{ lines: ['1', '2', '3'] }, { row: undefined }]);
    await second.close();
    const again = new SqliteStore(path, 0);
    expect(await stateOf(again, ['r'])).toMatchObject([{ row: { last: 3 }, lines: ['1', '2', '3'] }]);
    await again.close();
  });

  it('has no claims of webhooks when it is opened, and all first attempts are due', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
    const claimed = { ...delivery(1), url: 'https://a.example/' };
    const tried = { ...delivery(1), url: 'https://b.example/' };
    // Its run asked for it before the clock was set back by an hour.
    const later = { ...delivery(1), created_at: inAnHour };
    await store.commit([claimed, tried, later].map((one) => webhooks([one])));
    for (const one of await store.outbox.claimDeliveries(at(1), inAnHour, 10))
      if (one.url === tried.url)
        await store.outbox.finishDelivery(one, { ...again(2), state: 'pending', next_at: inAnHour });
    const next = new SqliteStore(copyAfterKill(path, newPath()));
    const now = new Date().toISOString();
    const due = await next.outbox.claimDeliveries(now, inAnHour, 10);
    expect(due.map(({ delivery_id }) => delivery_id)).toEqual([claimed.delivery_id, later.delivery_id]);
    await Promise.all([store.close(), next.close()]);
  });

  it('is unlocked after it could not be opened', async () => {
    const path = newPath();
    const other = openDatabase(path);
    other.exec('PRAGMA user_version = 99');
    expect(() => new SqliteStore(path)).toThrow(
      `${path} was written by a newer Rivulet (version 99, this one knows ${fileVersion})`,
    );
    other.exec('PRAGMA user_version = 2');
    expect(() => new SqliteStore(path)).toThrow(
      `${path} was written before Rivulet's first release (version 2); use another file`,
    );
    other.exec('PRAGMA user_version = 0');
    other.close();
    await new SqliteStore(path, 0).close();
    const text = newPath();
    writeFileSync(text, 'no database '.repeat(100));
    expect(() => new SqliteStore(text, 0)).toThrow('file is not a database');
    expect(() => new SqliteStore(text, 0)).toThrow('file is not a database');
  });

  it('can be read by others while it is in use', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    await store.commit([grow(newRow('r'), ['{}'])]);
    const other = openDatabase(path, { readOnly: true });
    expect(other.prepare('SELECT run_id FROM runs').all()).toEqual([{ run_id: 'r' }]);
    other.close();
    await store.close();
  });

  it('has every commit after a kill, and nothing of a rejected write', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const [a, b] = [newRow('a'), newRow('b')];
    const resource = { resource_id: 'x', session_id: 's', run_id: null, content_type: 'text/plain', body: '' };
    await store.commit([grow(a, ['1']), grow(b, ['1'], { resources: [resource] })]);
    await store.commit([grow({ ...a, last: 1 }, ['2', '3'], { journal: ['j'] })]);
    const broken = grow({ ...b, last: 1 }, ['2'], { resources: [resource] });
    const writes = [grow({ ...a, last: 3 }, ['4']), broken, grow({ ...a, last: 4 }, ['5']), broken];
    const rejected = { rejected: expect.objectContaining({ message: expect.stringContaining('UNIQUE') }) };
    expect(await store.commit(writes)).toEqual(['taken', rejected, 'taken', rejected]);
    const after = await stateOf(store, ['a', 'b']);
    expect(after).toMatchObject([
      { row: { last: 5 }, lines: ['1', '2', '3', '4', '5'], journal: ['j'] },
      { lines: ['1'] },
    ]);
    const copy = new SqliteStore(copyAfterKill(path, newPath()));
    expect(await stateOf(copy, ['a', 'b'])).toEqual(after);
    await Promise.all([store.close(), copy.close()]);
  });

  it.each([
    ['a header that is none', 'b three'],
    ['a run without events', 'b 3 0 1'],
  ])('opens with a damaged commit, %s, and has the events before the damage', async (_, header) => {
    const path = newPath();
    const store = new SqliteStore(path);
    const rows = ['a', 'b', 'c'].map(newRow);
    await store.commit(rows.map((row) => grow(row, ['1'])));
    for (let last = 1; last < 4; last += 1)
      await store.commit(rows.map((row) => grow({ ...row, last }, [`${last + 1}`])));
    const copy = copyAfterKill(path, newPath());
    await store.close();
    const other = openDatabase(copy);
    // The header of the second run of the third commit.
    other.exec(`UPDATE commits SET body = replace(body, 'b 3 1 0', '${header}') WHERE position = 3`);
    other.close();
    const again = new SqliteStore(copy);
    const [all, some] = [
      ['1', '2', '3', '4'],
      ['1', '2'],
    ];
    expect(await stateOf(again, ['a', 'b', 'c'])).toMatchObject([{ lines: all }, { lines: some }, { lines: some }]);
    expect(await again.commit([grow({ ...newRow('b'), last: 2 }, ['three'])])).toEqual(['taken']);
    await again.close();
    const last = new SqliteStore(copy);
    expect(await stateOf(last, ['a', 'b'])).toMatchObject([{ lines: all }, { lines: [...some, 'three'] }]);
    await last.close();
  });

  it('keeps its commit log short, however long runs last and however slow some are', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const slow = Array.from({ length: 50 }, (_, n) => newRow(`slow${n}`));
    await store.commit([...slow, newRow('quick')].map((row) => grow(row, ['{}'])));
    await store.commit(slow.map((row) => grow({ ...row, last: 1 }, ['{"n":2}'])));
    const other = openDatabase(path, { readOnly: true });
    const rows = other.prepare<[], { count: number }>('SELECT count(*) AS count FROM commits');
    let most = 0;
    for (let last = 1; last < 10_000; last += 1) {
      await store.commit([grow({ ...newRow('quick'), last }, [`{"n":${last}}`])]);
      if (last % 100 === 0) most = Math.max(most, rows.get()?.count ?? 0);
    }
    expect(most).toBeGreaterThan(1000);
    expect(most).toBeLessThan(5000);
    expect(await stateOf(store, ['slow7', 'quick'])).toMatchObject([{ row: { last: 2 } }, { row: { last: 10_000 } }]);
    await store.close();
    expect(rows.get()).toEqual({ count: 0 });
    other.close();
  });

  it('continues a history in its order after a kill', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const message = (resource_id: string) => ({
      resource_id,
      session_id: 's',
      run_id: 'r',
      content_type: 'application/json',
      body: '{}',
    });
    const first = ['https://a/1', '/resources/one', 'https://a/2'];
    await store.commit([grow(newRow('r'), ['1'], { resources: [message('one')], history: first })]);
    const again = new SqliteStore(copyAfterKill(path, newPath()));
    const more = ['/resources/two', 'https://a/3', '/resources/one', 'https://a/1'];
    const second = grow({ ...newRow('r'), last: 1 }, ['2'], { resources: [message('two')], history: more });
    expect(await again.commit([second])).toEqual(['taken']);
    expect((await again.session('s'))?.history).toEqual([...first, '/resources/two', 'https://a/3']);
    expect(await again.commit([grow({ ...newRow('q'), session_id: 't' }, ['1'])])).toEqual(['taken']);
    expect((await again.session('t'))?.history).toEqual([]);
    await Promise.all([store.close(), again.close()]);
  });

  it('has each column of a row in its place, when a run is made and when it changes', async () => {
    const store = new SqliteStore(newPath());
    const texts = (suffix: string): RunRow => ({
      ...newRow('columns'),
      agent_name: `agent ${suffix}`,
      session_id: `session ${suffix}`,
      owner: `owner ${suffix}`,
      principal: `principal ${suffix}`,
      targets: `targets ${suffix}`,
      readers: `readers ${suffix}`,
      trace: `trace ${suffix}`,
      status: 'awaiting',
      status_at: `status at ${suffix}`,
      created_at: `created ${suffix}`,
      title: `title ${suffix}`,
      queued_at: `queued ${suffix}`,
      due: `due ${suffix}`,
      rests_at: `rests at ${suffix}`,
      parked: `parked ${suffix}`,
      on_disconnect: `on disconnect ${suffix}`,
    });
    const made = { ...texts('made'), epoch: 3, attempts: 4, last: 1, snapshot: 5 };
    expect(await store.commit([{ row: made, expect: 0, lines: ['1'], input: [] }])).toEqual(['taken']);
    expect(await store.run('columns')).toEqual(made);
    const { trace, status_at, queued_at, due, rests_at, parked } = texts('changed');
    const more = { epoch: 6, attempts: 7, last: 2, snapshot: 8, status: 'failed', finished_at: 'finished' } as const;
    const changed = { ...made, trace, status_at, queued_at, due, rests_at, parked, ...more };
    expect(await store.commit([{ row: changed, expect: 1, from: 3, lines: ['2'] }])).toEqual(['taken']);
    expect(await store.run('columns')).toEqual(changed);
    await store.close();
  });

  it.each([
    [10, 'rests_at', 'parked', 'readers'],
    [11, 'parked', 'readers'],
    [12, 'readers'],
  ])('upgrades a file of version %d, which has no column %s', async (version, ...missing) => {
    const path = newPath();
    const store = new SqliteStore(path);
    await store.commit([grow(newRow('r'), ['1'])]);
    await store.close();
    const before = openDatabase(path);
    if (missing.includes('parked')) before.exec('DROP INDEX runs_parked');
    for (const column of missing) before.exec(`ALTER TABLE runs DROP COLUMN ${column}`);
    before.exec(`PRAGMA user_version = ${version}`);
    before.close();
    const again = new SqliteStore(path);
    expect(await again.run('r')).toMatchObject({ last: 1, rests_at: null, parked: null, readers: null });
    expect(await again.runs({ parked: true }, undefined, 10)).toEqual([]);
    await again.close();
    await new SqliteStore(path).close();
  });

  it('continues its sessions after a start, in whatever script their ids are', async () => {
    const path = newPath();
    // In UTF-8 the second comes last, and in UTF-16 the first.
    const sessions = ['of \ufffd', 'of \u{1f600}', 'of a'];
    for (const turn of [1, 2, 3]) {
      const store = new SqliteStore(path);
      for (const session_id of sessions) {
        const row = { ...newRow(`${turn} ${session_id}`), session_id };
        const history = [`https://${turn}/`];
        expect(await store.commit([grow(row, ['1'], { history })])).toEqual(['taken']);
        expect((await store.session(session_id))?.history).toHaveLength(turn);
      }
      await store.close();
    }
  });

  it('returns the same as a store in memory, whatever is written and whenever it is killed', async () => {
    const ids = ['a', 'b', 'c'];
    const run = fc.constantFrom(...ids);
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ do: fc.constant('grow' as const), run, count: fc.integer({ min: 1, max: 9 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constantFrom('journal', 'note', 'change', 'take', 'stale', 'long', 'end'), run }),
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
            if (one.do === 'kill') path = copyAfterKill(path, newPath());
            await store.close();
            store = new SqliteStore(path);
          } else if (one.do === 'fail') {
            const twice = { resource_id: 'x', session_id: 's', run_id: null, content_type: 'a/b', body: '' };
            const never = grow(newRow('never'), ['1'], { resources: [twice, twice] });
            const [outcome] = await model.commit([write]);
            expect(await store.commit([write, never])).toEqual([outcome, { rejected: expect.anything() }]);
          } else {
            expect(await store.commit([write])).toEqual(await model.commit([write]));
          }
          expect(await stateOf(store, ids)).toEqual(await stateOf(model, ids));
        }
        await store.close();
      }),
      { numRuns: Number(process.env.FC_RUNS ?? 40) },
    );
  });
});

it('lists runs by every combination of filters, each by an index of its own', async () => {
  const store = new SqliteStore(':memory:');
  const [names, statuses] = [['a', 'b'], ['created', 'in-progress', 'awaiting', 'completed', 'failed'] as const];
  const rows = names.flatMap((agent_name) =>
    names.flatMap((session_id) =>
      statuses.map((status, n): RunRow => {
        const finished_at = n > 2 ? '2026-01-01T00:00:01.000Z' : null;
        return { ...newRow(`${agent_name}${session_id}${n}`), agent_name, session_id, status, finished_at, last: 1 };
      }),
    ),
  );
  await store.commit(rows.map((row) => ({ row, expect: 0, lines: ['1'], input: [] })));
  for (const agent_name of [undefined, ...names]) {
    for (const session_id of [undefined, ...names]) {
      for (const status of [undefined, ...statuses]) {
        const filter = {
          ...(agent_name && { agent_name }),
          ...(session_id && { session_id }),
          ...(status && { status }),
        };
        const same = (one: RunRow): boolean =>
          Object.entries(filter).every(([key, value]) => Reflect.get(one, key) === value);
        const fitting = rows.filter(same).toReversed();
        expect(await store.runs(filter, undefined, 100)).toEqual(fitting);
        expect(await store.runs(filter, fitting[0]?.run_id, 1)).toEqual(fitting.slice(1, 2));
      }
    }
  }
  await store.close();
});

it('is loaded without the warning about an experiment, while other warnings are shown', () => {
  const code = `
    const { openDatabase } = await import('./dist/stores/sqlite/driver.js');
    openDatabase(':memory:').close();
    process.emitWarning('something else');
  `;
  const args = ['--input-type=module', '--eval', code];
  const { stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stderr).toContain('something else');
  expect(stderr).not.toContain('Experimental');
  expect(status).toBe(0);
});

function writeOf(kind: string, row: RunRow, count: number, text: string): Write {
  const lines = Array.from({ length: count }, (_, n) => JSON.stringify({ text, n }));
  if (kind === 'journal') return grow(row, lines, { journal: [`${text} is due`] });
  if (kind === 'note' && row.last > 0) return grow(row, [], { journal: [`${text} is noted`] });
  if (kind === 'long') return grow(row, ['x'.repeat(20_000)]);
  if (kind === 'stale') return grow({ ...row, last: row.last + 1, epoch: row.epoch }, lines, { grown: true });
  if (kind === 'fail') return grow(row, lines, { grown: false });
  const changed = grow(row, lines, { grown: false });
  if (kind === 'take') return { ...changed, row: { ...changed.row, epoch: row.epoch + 1 }, from: row.epoch };
  if (kind === 'change') return { ...changed, row: { ...changed.row, status: 'awaiting' } };
  if (kind === 'end') return { ...changed, row: { ...changed.row, status: 'completed', finished_at: row.created_at } };
  return grow(row, lines);
}
