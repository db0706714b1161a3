import { describe, expect, it } from 'vitest';
import type { RunRow, When, Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { ownedRow } from './contract-owners.ts';
import { expectSteady, shortest } from './steady-cost.ts';
import { append, end, fresh, messageOf } from './writes.ts';

const queued_at = '2026-01-01T00:00:00.000Z';

/** The cost of every store's calls: with much data compared with little. */
export function costsContract(store: () => Store): void {
  describe('with much data', () => {
    /** Commits runs of a session, 500 at a time. */
    const made = async (
      count: number,
      row: () => RunRow,
      more?: (row: RunRow) => Partial<Write>,
    ): Promise<RunRow[]> => {
      const writes = Array.from({ length: count }, () => row()).map((one) => append(one, ['1'], more?.(one)));
      await committed(writes);
      return writes.map((write) => write.row);
    };
    const committed = async (writes: readonly Write[]): Promise<void> => {
      for (let n = 0; n < writes.length; n += 500) await store().commit(writes.slice(n, n + 500));
    };
    const ended = (rows: readonly RunRow[]): Promise<void> => committed(rows.map((row) => end(row, 'completed')));

    it('looks at a session’s unfinished runs at the same cost, however many have finished', async () => {
      const probed = async (finished: number): Promise<number> => {
        const session_id = `finished-${finished}-${fresh().run_id}`;
        const running = append(fresh({ session_id }), ['1']);
        await store().commit([running]);
        await ended(await made(finished, () => fresh({ session_id })));
        const probe = async (): Promise<void> => {
          for (let n = 0; n < 10; n += 1) {
            expect(await store().unfinished(session_id, '', 100)).toEqual([running.row]);
            expect(await store().count(session_id)).toBe(1);
            const refused = (['alone', 'first'] as const).map((when) => append(fresh({ session_id }), ['1'], { when }));
            refused.push(append(running.row, ['2'], { when: 'last', from: 9 }));
            expect(await store().commit(refused)).toEqual(['session_busy', 'session_busy', 'fenced']);
          }
        };
        const best = await shortest(store(), 7, probe);
        await store().commit([end(running.row, 'completed')]);
        return best;
      };
      await expectSteady(probed, [40, 4_000]);
    });

    it('starts the next run of a queue at the same cost, however many wait', async () => {
      const begun = async (waiting: number): Promise<number> => {
        const session_id = `queue-${waiting}-${fresh().run_id}`;
        const rows = await made(waiting, () => fresh({ session_id, queued_at }));
        const best = await shortest(store(), 8, async (round) => {
          const [next] = await store().unfinished(session_id, '', 1);
          expect(next?.run_id).toBe(rows[round]?.run_id);
          if (next === undefined) throw new Error('the queue is empty');
          const row = { ...next, queued_at: null };
          const younger = { ...(rows[round + 1] ?? next), queued_at: null };
          const write = (row: RunRow, when: When): Write => ({ row, expect: 1, lines: [], when });
          const begins = [write(younger, 'first'), write(row, 'alone'), write(row, 'last'), write(row, 'first')];
          expect(await store().commit(begins)).toEqual(['session_busy', 'session_busy', 'session_busy', 'taken']);
          expect(await store().commit([end(row, 'completed')])).toEqual(['taken']);
        });
        expect(await store().count(session_id)).toBe(waiting - 8);
        await ended(rows.slice(8));
        return best;
      };
      await expectSteady(begun, [40, 4_000]);
    });

    it('adds to a session at the same cost, however long its history is', async () => {
      const added = async (messages: number): Promise<number> => {
        const session_id = `history-${messages}-${fresh().run_id}`;
        const seed = fresh({ session_id });
        const urls = Array.from({ length: messages }, (_, n) => `https://a/${n}`);
        await store().commit([append(seed, ['1'], { history: urls })]);
        const best = await shortest(store(), 8, async (round) => {
          const writes = Array.from({ length: 5 }, (_, n) => {
            const row = fresh({ session_id });
            const question = messageOf(row, 'question');
            const history = [...(question.history ?? []), `https://b/${round}/${n}`, 'https://a/0'];
            return append(row, ['1'], { ...question, history });
          });
          await store().commit(writes);
          await ended(writes.map(({ row }) => row));
        });
        expect((await store().session(session_id))?.history).toHaveLength(messages + 80);
        await store().commit([end({ ...seed, last: 1 }, 'completed')]);
        return best;
      };
      await expectSteady(added, [100, 10_000]);
    });

    it('adds many messages at once at a cost that is linear in their number', async () => {
      const added = (messages: number): Promise<number> =>
        shortest(store(), 2, async () => {
          const row = fresh();
          const own = Array.from({ length: messages }, (_, n) => messageOf(row, `message-${n}`));
          const foreign = Array.from({ length: messages }, (_, n) => `https://a/${n % (messages / 2)}`);
          const write = append(row, ['1'], {
            resources: own.flatMap(({ resources }) => resources ?? []),
            history: [...own.flatMap(({ history }) => history ?? []), ...foreign],
          });
          expect(await store().commit([write])).toEqual(['taken']);
          expect((await store().session(row.session_id))?.history).toHaveLength(messages * 1.5);
          await store().commit([end(write.row, 'completed')]);
        });
      // Twenty times the messages take twenty times as long, or somewhat more on a busy disk. Quadratic would be
      // seconds.
      await expectSteady(added, [500, 10_000], (small) => 120 * small + 300);
    });

    it('counts the open runs of an owner at the same cost, however many others have', async () => {
      const counted = async (others: number): Promise<number> => {
        const owner = `key:counts-${others}-${fresh().run_id}`;
        const own = await made(5, () => ownedRow(owner));
        const rest = await made(others, () => ownedRow(`${owner}-${fresh().run_id}`));
        const best = await shortest(store(), 8, async () => {
          for (let n = 0; n < 10; n += 1) {
            expect(await store().openRuns(owner)).toMatchObject([{ status: 'created', count: 5 }]);
          }
        });
        await ended([...own, ...rest]);
        expect(await store().openRuns(owner)).toEqual([]);
        return best;
      };
      await expectSteady(counted, [50, 5_000]);
    });

    it('reads a page of runs by the time of their status at the same cost, however many there are', async () => {
      const listed = async (count: number): Promise<number> => {
        const agent_name = `listed-${count}-${fresh().run_id}`;
        const owner = `key:${agent_name}`;
        const rows = await made(count, () => ({ ...ownedRow(owner), agent_name }));
        const [failed, ...others] = rows;
        if (failed === undefined) throw new Error('there are no runs');
        await committed([end(failed, 'failed')]);
        await ended(others);
        const best = await shortest(store(), 8, async () => {
          for (const filter of [{ agent_names: [agent_name] }, { agent_names: [agent_name], owner }]) {
            const page = await store().runsByStatusTime(filter, undefined, 10);
            expect(page).toHaveLength(10);
            expect(await store().runsByStatusTime(filter, page.at(-1), 10)).toHaveLength(10);
            expect(await store().runsByStatusTime({ ...filter, statuses: ['failed'] }, undefined, 10)).toHaveLength(1);
          }
        });
        expect(await store().countRuns({ agent_names: [agent_name], owner, statuses: ['completed'] })).toBe(count - 1);
        return best;
      };
      await expectSteady(listed, [50, 5_000]);
    });

    it('removes a run at the same cost, however many its session has', async () => {
      const removed = async (runs: number): Promise<number> => {
        const session_id = `removing-${runs}-${fresh().run_id}`;
        const rows = await made(
          runs,
          () => fresh({ session_id }),
          (row) => messageOf(row, 'question'),
        );
        await ended(rows);
        const best = await shortest(store(), 8, async (round) => {
          for (const { run_id } of rows.slice(round * 5, round * 5 + 5))
            expect(await store().remove(run_id)).toBe(true);
        });
        expect((await store().session(session_id))?.history).toHaveLength(runs - 40);
        return best;
      };
      await expectSteady(removed, [50, 5_000]);
    });
  });
}
