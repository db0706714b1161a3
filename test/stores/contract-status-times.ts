import { describe, expect, it } from 'vitest';
import type { RunRow, StatusFilter, StatusPosition, Store } from '../../src/core/store.ts';
import { newId } from '../../src/engine/ids.ts';
import type { RunStatus } from '../../src/schema/run.ts';
import { ownedRow } from './contract-owners.ts';
import { append, end, fresh, type TestWrite } from './writes.ts';

/** A time of the tests. */
const at = (second: number): string => new Date(Date.UTC(2026, 0, 2) + second * 1_000).toISOString();

/** The write that gives a run a status at a second. */
const become = (row: RunRow, status: RunStatus, second: number): TestWrite =>
  append({ ...row, status, status_at: at(second), finished_at: status === 'completed' ? at(second) : null }, ['1']);

/** Lists of runs by the time of their status. Runs of each test have an agent of their own. */
export function statusTimesContract(store: () => Store): void {
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
