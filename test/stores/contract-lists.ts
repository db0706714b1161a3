import { describe, expect, it } from 'vitest';
import type { StatusFilter, StatusPosition } from '../../src/core/ports/run-lists.ts';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { newId } from '../../src/engine/ids.ts';
import type { RunStatus } from '../../src/schema/run.ts';
import { ownedRow } from './contract-owners.ts';
import { append, end, fresh, type TestWrite } from './writes.ts';

/** Lists of runs, their numbers and the figures of agents. */
export function listsContract(store: () => Store): void {
  it('lists unfinished runs, oldest first, from any run on', async () => {
    const before = fresh();
    const open = append(fresh(), ['1']);
    const done = append(fresh(), ['1']);
    const end = append({ ...done.row, status: 'failed', finished_at: '2026-01-01T00:00:01.000Z' }, ['2']);
    const later = append(fresh(), ['1']);
    await store().commit([later, open, done, end]);
    expect(await store().unfinished(undefined, before.run_id, 1000)).toEqual([open.row, later.row]);
    expect(await store().unfinished(undefined, before.run_id, 1)).toEqual([open.row]);
    expect(await store().unfinished(undefined, open.row.run_id, 1000)).toEqual([later.row]);
  });

  it('sums the figures of an agent’s ended runs, without cancelled ones', async () => {
    const agent_name = `agent-${Date.now()}`;
    const ended = (status: RunRow['status'], tokens: number): Write[] => {
      const first = append(fresh({ agent_name }), ['1']);
      return [first, end(first.row, status, status === 'cancelled' ? {} : { ended: { tokens, seconds: tokens / 10 } })];
    };
    await store().commit([
      ...ended('completed', 10),
      ...ended('completed', 20),
      ...ended('failed', 3),
      ...ended('cancelled', 99),
    ]);
    expect(await store().figures([agent_name, 'never-ran'])).toEqual([
      { agent_name, completed: 2, failed: 1, tokens: 33, seconds: 3.3 },
    ]);
  });

  it('lists runs newest first, by agent, session and status, from any run on', async () => {
    const agent_name = `lister-${Date.now()}`;
    const rows = Array.from({ length: 6 }, (_, n) =>
      append(fresh({ agent_name, session_id: `s${n % 2}-${agent_name}` }), ['1']),
    );
    await store().commit(rows);
    const ids = rows.map(({ row }) => row.run_id).reverse();
    const listed = async (...args: Parameters<Store['runs']>) =>
      (await store().runs(...args)).map(({ run_id }) => run_id);
    expect(await listed({ agent_name }, undefined, 10)).toEqual(ids);
    expect(await listed({ agent_name }, ids[1], 2)).toEqual(ids.slice(2, 4));
    expect(await listed({ session_id: `s0-${agent_name}` }, undefined, 10)).toEqual([ids[1], ids[3], ids[5]]);
    expect(await listed({ agent_name, status: 'completed' }, undefined, 10)).toEqual([]);
    expect(await listed({ agent_name, status: 'created' }, undefined, 1)).toEqual([ids[0]]);
  });

  it('lists the parked runs alone, newest first and with each other filter, until they are parked no more', async () => {
    const agent_name = `parker-${Date.now()}`;
    const owner = `key:${agent_name}`;
    const made = Array.from({ length: 5 }, () =>
      append(fresh({ agent_name, owner, session_id: `${owner} s`, status: 'awaiting' }), ['1']),
    );
    await store().commit(made);
    const park = { parked: 'why', rests_at: '2026-01-01T00:00:00.000Z' };
    const parked = made.slice(1, 4).map(({ row }) => append({ ...row, ...park, epoch: 2 }, [], { from: 1 }));
    expect(await store().commit(parked)).toEqual(['taken', 'taken', 'taken']);
    const [oldest, middle, newest] = parked.map(({ row }) => row);
    if (oldest === undefined || middle === undefined || newest === undefined) throw new Error('three are parked');
    const listed = (more: object, before?: string, limit = 10) =>
      store().runs({ agent_name, parked: true, ...more }, before, limit);
    for (const more of [
      {},
      { owner },
      { session_id: `${owner} s` },
      { status: 'awaiting' },
      { owner, status: 'awaiting' },
    ])
      expect(await listed(more)).toEqual([newest, middle, oldest]);
    for (const more of [
      { owner: 'key:other' },
      { session_id: 'other' },
      { status: 'created' },
      { agent_name: 'other' },
    ])
      expect(await listed(more)).toEqual([]);
    expect(await listed({}, newest.run_id, 1)).toEqual([middle]);
    expect((await store().unfinished(`${owner} s`, '', 10)).map((row) => row.parked)).toEqual([
      null,
      'why',
      'why',
      'why',
      null,
    ]);
    const tried = append({ ...middle, parked: null, rests_at: null, epoch: 3 }, [], { from: 2 });
    expect(await store().commit([tried, end({ ...oldest, parked: null }, 'cancelled')])).toEqual(['taken', 'taken']);
    expect(await listed({})).toEqual([newest]);
    expect(await store().run(middle.run_id)).toEqual(tried.row);
  });

  it('lists the runs of a session newest first, also where final ones and others alternate', async () => {
    const session_id = `mixed-${Date.now()}`;
    const writes = Array.from({ length: 9 }, () => append(fresh({ session_id }), ['1']));
    await store().commit(writes);
    const ended = [1, 2, 5, 8];
    await store().commit(
      writes.flatMap(({ row }, n) => (ended.includes(n) ? [end(row, n === 5 ? 'failed' : 'completed')] : [])),
    );
    const ids = writes.map(({ row }) => row.run_id).reverse();
    const listed = async (...args: Parameters<Store['runs']>) =>
      (await store().runs(...args)).map(({ run_id }) => run_id);
    expect(await listed({ session_id }, undefined, 10)).toEqual(ids);
    for (const at of [2, 4, 6]) expect(await listed({ session_id }, ids[at - 1], 2)).toEqual(ids.slice(at, at + 2));
    expect(await listed({ session_id, status: 'completed' }, undefined, 10)).toEqual([ids[0], ids[6], ids[7]]);
    expect(await listed({ session_id, status: 'failed' }, undefined, 10)).toEqual([ids[3]]);
    expect(await listed({ session_id, status: 'created' }, ids[1], 2)).toEqual([ids[2], ids[4]]);
    expect(await store().count(session_id)).toBe(5);
  });

  it('finds the runs that are due, and the unfinished runs of a session', async () => {
    const session_id = `due-${Date.now()}`;
    const soon = append(fresh({ session_id, due: '2026-01-01T00:00:05.000Z' }), ['1']);
    const never = append(fresh({ session_id }), ['1']);
    const done = append(fresh({ session_id, status: 'failed', finished_at: '2026-01-01T00:00:01.000Z' }), ['1']);
    await store().commit([soon, never, done]);
    expect(await store().due('2026-01-01T00:00:04.000Z', 10)).toEqual([]);
    expect(await store().due('2026-01-01T00:00:05.000Z', 10)).toEqual([soon.row]);
    expect(await store().unfinished(session_id, '', 10)).toEqual([soon.row, never.row]);
    expect(await store().unfinished(session_id, soon.row.run_id, 10)).toEqual([never.row]);
    expect(await store().count(session_id)).toBe(2);
    await store().commit([end({ ...soon.row, due: null }, 'cancelled')]);
    expect(await store().count(session_id)).toBe(1);
    expect(await store().due('2026-01-01T00:00:05.000Z', 10)).toEqual([]);
    expect(await store().count('unknown')).toBe(0);
  });

  it('counts the runs that are not final, by status, with the oldest one', async () => {
    const session_id = `open-${Date.now()}`;
    const counted = async (): Promise<number[]> => {
      const open = await store().openRuns();
      return ['created', 'awaiting', 'failed'].map((one) => open.find(({ status }) => status === one)?.count ?? 0);
    };
    const [created = 0, awaiting = 0] = await counted();
    const first = append(fresh({ session_id, status: 'awaiting' }), ['1']);
    const second = append(fresh({ session_id, status: 'awaiting' }), ['1']);
    const queued = append(fresh({ session_id, status: 'created' }), ['1']);
    await store().commit([first, second, queued]);
    expect(await counted()).toEqual([created + 1, awaiting + 2, 0]);
    expect(await store().openRuns(session_id)).toEqual([]);
    const owned = append(fresh({ owner: session_id, status: 'awaiting' }), ['1']);
    await store().commit([owned]);
    const { run_id } = owned.row;
    expect(await store().openRuns(session_id)).toEqual([{ status: 'awaiting', count: 1, oldest: run_id }]);
    await store().commit([end(owned.row, 'failed')]);
    expect(await store().openRuns(session_id)).toEqual([]);
    const oldest = (await store().openRuns()).find(({ status }) => status === 'awaiting')?.oldest ?? '';
    expect([first, second].every(({ row }) => oldest <= row.run_id)).toBe(true);
    expect((await store().run(oldest))?.status).toBe('awaiting');
    for (const { row } of [first, second, queued]) await store().commit([end(row, 'failed')]);
    expect(await counted()).toEqual([created, awaiting, 0]);
  });

  statusTimes(store);
}

/** A time of the tests. */
const at = (second: number): string => new Date(Date.UTC(2026, 0, 2) + second * 1_000).toISOString();

/** The write that gives a run a status at a second. */
const become = (row: RunRow, status: RunStatus, second: number): TestWrite =>
  append({ ...row, status, status_at: at(second), finished_at: status === 'completed' ? at(second) : null }, ['1']);

/** Lists of runs by the time of their status. Runs of each test have an agent of their own. */
function statusTimes(store: () => Store): void {
  const list = async (filter: StatusFilter, after?: StatusPosition, limit = 100): Promise<string[]> =>
    (await store().runsByStatusTime(filter, after, limit)).map(({ run_id }) => run_id);
  const ids = (...writes: TestWrite[]): string[] => writes.map(({ row }) => row.run_id);

  describe('the runs of an agent, by the time of their status', () => {
    it('are listed newest first, as they change', async () => {
      const agent_name = `times-${newId()}`;
      const agent_names = [agent_name];
      const [a, b, c] = [1, 2, 3].map((second) => append(fresh({ agent_name, status_at: at(second) }), ['1'])) as [
        TestWrite,
        TestWrite,
        TestWrite,
      ];
      const other = append(fresh({ agent_name: `${agent_name}-other`, status_at: at(3) }), ['1']);
      await store().commit([a, b, c, other]);
      const both = { agent_names: [agent_name, other.row.agent_name] };
      expect(await list(both)).toEqual(ids(other, c, b, a));
      expect(await store().countRuns(both)).toBe(4);
      expect(await list({ agent_names })).toEqual(ids(c, b, a));
      const begun = become(a.row, 'in-progress', 4);
      await store().commit([begun]);
      expect(await list({ agent_names })).toEqual(ids(a, c, b));
      await store().commit([become(b.row, 'completed', 5)]);
      expect(await list({ agent_names })).toEqual(ids(b, a, c));
      expect(await store().runsByStatusTime({ agent_names, statuses: ['in-progress'] }, undefined, 5)).toEqual([
        begun.row,
      ]);
      expect(await store().countRuns({ agent_names })).toBe(3);
    });

    it('are listed with those of all other agents, since a time', async () => {
      // Later than all runs of other tests.
      const since = (second: number): StatusFilter => ({ since: `2033-01-01T00:00:${10 + second}.000Z` });
      const statuses = ['failed', 'awaiting', 'completed', 'cancelled', 'created', 'in-progress'] as const;
      const agent = `all-${newId()}`;
      // Each second another agent, and after three another status.
      const runs = Array.from({ length: 18 }, (_, n) => {
        const status = statuses[Math.floor(n / 3)] ?? 'created';
        const { since: status_at = '' } = since(n);
        const finished_at = ['failed', 'completed', 'cancelled'].includes(status) ? status_at : null;
        return append(fresh({ agent_name: `${agent}-${n % 3}`, status, status_at, finished_at }), ['1']);
      });
      await store().commit(runs.toReversed());
      const newest = ids(...runs).toReversed();
      expect(await list(since(0))).toEqual(newest);
      expect(await list(since(13))).toEqual(newest.slice(0, 5));
      expect(await list(since(0), runs[6]?.row, 4)).toEqual(newest.slice(12, 16));
      expect(await list({ ...since(0), statuses: ['awaiting', 'created'] })).toEqual(
        ids(...runs.slice(12, 15).toReversed(), ...runs.slice(3, 6).toReversed()),
      );
      expect(await store().countRuns(since(7))).toBe(11);
      const [run] = runs;
      if (run !== undefined) await store().remove(run.row.run_id);
      expect(await list(since(0))).toEqual(newest.slice(0, 17));
      // The lists of other tests are without a time.
      for (const { row } of runs.slice(1)) if (row.finished_at === null) await store().commit([end(row, 'cancelled')]);
      for (const { row } of runs) await store().remove(row.run_id);
    });

    it('keep their place while only the log grows', async () => {
      const agent_name = `growing-${newId()}`;
      const agent_names = [agent_name];
      const [a, b] = [1, 2].map((second) => append(fresh({ agent_name, status_at: at(second) }), ['1'])) as [
        TestWrite,
        TestWrite,
      ];
      await store().commit([a, b]);
      const grown = append(a.row, ['2'], { grown: true });
      await store().commit([grown]);
      expect(await store().runsByStatusTime({ agent_names }, undefined, 5)).toEqual([b.row, grown.row]);
    });

    it('are filtered by owner, session, status and time, and counted', async () => {
      const agent_name = `filters-${newId()}`;
      const agent_names = [agent_name];
      const [owner, other] = [`key:a-${newId()}`, `key:b-${newId()}`];
      const session_id = `${owner} s`;
      const one = append({ ...ownedRow(owner), agent_name, session_id, status_at: at(1) }, ['1']);
      const two = append({ ...ownedRow(owner), agent_name, status_at: at(2) }, ['1']);
      const three = append({ ...ownedRow(other), agent_name, status_at: at(3) }, ['1']);
      await store().commit([one, two, three]);
      const awaiting = become(two.row, 'awaiting', 4);
      await store().commit([awaiting]);
      const cases: [Omit<StatusFilter, 'agent_names'>, string[]][] = [
        [{}, ids(two, three, one)],
        [{ owner }, ids(two, one)],
        [{ owner: other }, ids(three)],
        [{ owner: '' }, []],
        [{ session_id }, ids(one)],
        [{ session_id, owner: other }, []],
        [{ session_id, statuses: ['awaiting'] }, []],
        [{ session_id: 'unknown' }, []],
        [{ statuses: ['awaiting'] }, ids(two)],
        [{ statuses: ['awaiting', 'created'], owner }, ids(two, one)],
        [{ statuses: [] }, []],
        [{ since: at(3) }, ids(two, three)],
        [{ since: at(3), owner }, ids(two)],
        [{ since: at(2), session_id }, []],
        [{ since: at(5) }, []],
      ];
      for (const [filter, expected] of cases) {
        expect(await list({ agent_names, ...filter }), JSON.stringify(filter)).toEqual(expected);
        expect(await store().countRuns({ agent_names, ...filter }), JSON.stringify(filter)).toBe(expected.length);
      }
      expect(await list({ agent_names: ['unknown'] })).toEqual([]);
      expect(await list({ agent_names: [] })).toEqual([]);
      expect(await store().countRuns({ agent_names: ['unknown'] })).toBe(0);
    });

    it('are read in pages, also where many have the same time and status', async () => {
      const agent_name = `pages-${newId()}`;
      const agent_names = [agent_name];
      const owner = `key:${newId()}`;
      const statuses = ['created', 'in-progress', 'awaiting'] as const;
      const writes = Array.from({ length: 40 }, (_, n) => {
        const status = statuses[n % 3] ?? 'created';
        return append({ ...ownedRow(owner), agent_name, status, status_at: at(n % 7 < 5 ? 1 : 2) }, ['1']);
      });
      await store().commit(writes);
      const expected = writes
        .map(({ row }) => row)
        .sort((a, b) => (a.status_at + a.run_id < b.status_at + b.run_id ? 1 : -1))
        .map(({ run_id }) => run_id);
      for (const filter of [{ agent_names }, { agent_names, owner }]) {
        const found: string[] = [];
        for (let after: StatusPosition | undefined; ; ) {
          const page = await store().runsByStatusTime(filter, after, 3);
          found.push(...page.map(({ run_id }) => run_id));
          after = page.at(-1);
          if (page.length < 3) break;
        }
        expect(found).toEqual(expected);
        expect(await store().countRuns(filter)).toBe(40);
      }
    });

    it('are neither listed nor counted once they or their sessions are removed', async () => {
      const agent_name = `removed-${newId()}`;
      const agent_names = [agent_name];
      const owner = `key:${newId()}`;
      const [a, b] = [1, 2].map(() => append({ ...ownedRow(owner), agent_name }, ['1'])) as [TestWrite, TestWrite];
      await store().commit([a, b]);
      await store().commit([end(a.row, 'completed'), end(b.row, 'failed')]);
      expect(await store().remove(a.row.run_id)).toBe(true);
      expect(await list({ agent_names })).toEqual(ids(b));
      expect(await store().removeSession(b.row.session_id)).toBe(true);
      for (const filter of [{ agent_names }, { agent_names, owner }, { agent_names, session_id: b.row.session_id }]) {
        expect(await list(filter)).toEqual([]);
        expect(await store().countRuns(filter)).toBe(0);
      }
    });
  });
}
