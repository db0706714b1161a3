import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Write } from '../../src/core/ports/run-store.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { sharedDeliveriesContract } from './contract-outbox.ts';
import { append, end, fresh, input, messageOf, numbered } from './writes.ts';

/** A store that is opened twice: by two processes, or by one after the other. */
export function sharingContract(first: () => Store, open: () => Promise<Store>): void {
  describe('that is opened twice', () => {
    let one: Store;
    let other: Store;
    beforeEach(async () => {
      one = first();
      other = await open();
    });
    afterEach(() => other.close());

    it('shows to each what the other has written', async () => {
      const row = fresh();
      const write = append(row, ['1', '2'], { journal: ['{}'], state: '/s', ...messageOf(row, 'question') });
      await one.commit([write]);
      expect(await other.run(row.run_id)).toEqual(write.row);
      expect(await other.input(row.run_id)).toEqual(input);
      expect(numbered(await other.events(row.run_id, 1, 10)).at(-1)).toEqual([2, '2']);
      expect(await other.journal(row.run_id)).toEqual(['{}']);
      expect(await other.session(row.session_id)).toMatchObject({ history: write.history, state: '/s' });
      expect((await other.resources([`question-of-${row.run_id}`]))[0]).toEqual(write.resources?.[0]);
      await other.commit([append(write.row, ['3'])]);
      expect(await one.run(row.run_id)).toMatchObject({ last: 3 });
    });

    it('applies one of two writes at the same position of a log, and nothing of the other', async () => {
      let row = fresh();
      for (let round = 0; round < 20; round += 1) {
        const writes = ['one', 'other'].map((name) =>
          append(row, [`"${name} ${round}"`], { journal: [`"${name} ${round}"`], history: [`/${name}/${round}`] }),
        );
        const kept = (await Promise.all([one, other].map((store, n) => store.commit(writes.slice(n, n + 1))))).flat();
        expect(kept.toSorted()).toEqual(['fenced', 'taken']);
        const won = writes[kept.indexOf('taken')];
        if (won === undefined) throw new Error('none was taken');
        row = won.row;
        expect((await one.journal(row.run_id)).at(-1)).toBe(won.lines[0]);
        expect((await other.session(row.session_id))?.history.at(-1)).toBe(won.history?.[0]);
      }
      expect(await one.journal(row.run_id)).toHaveLength(20);
      expect((await one.session(row.session_id))?.history).toHaveLength(20);
      const log = numbered(await other.events(row.run_id, 0, 100));
      expect(log.map(([seq]) => seq)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
      expect(log.map(([, line]) => line)).toEqual(await one.journal(row.run_id));
    });

    it('lets one of two nodes take a run over', async () => {
      const first = append(fresh(), ['1']);
      await one.commit([first]);
      for (let epoch = 2; epoch < 12; epoch += 1) {
        const take: Write = { row: { ...first.row, epoch }, from: epoch - 1, expect: 1, lines: [] };
        const kept = await Promise.all([one.commit([take]), other.commit([take])]);
        expect(kept.flat().sort()).toEqual(['fenced', 'taken']);
      }
    });

    it('creates one of two runs with the same key', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [a, b] = [append(fresh(), ['1']), append(fresh(), ['1'])];
        const key = {
          scope: a.row.run_id,
          key: 'k',
          hash: 'h',
          after: 0,
          created_at: '2026-01-02',
          fresh: '2026-01-01',
        };
        const withKey = (write: Write): Write => ({ ...write, key: { ...key, run_id: write.row.run_id } });
        const kept = await Promise.all([one.commit([withKey(a)]), other.commit([withKey(b)])]);
        const [won, lost] = kept[0]?.[0] === 'taken' ? [a, b] : [b, a];
        expect(kept.flat().sort()).toEqual(['key_used', 'taken']);
        expect(await one.run(lost.row.run_id)).toBeUndefined();
        expect(await other.key(key.scope, 'k')).toMatchObject({ run_id: won.row.run_id });
      }
    });

    it('creates one of two runs that must each be alone in their session', async () => {
      for (let round = 0; round < 20; round += 1) {
        const session_id = `alone-${fresh().run_id}`;
        const [a, b] = [1, 2].map(() => {
          const row = fresh({ session_id });
          return append(row, ['1'], { when: 'alone', ...messageOf(row, 'question') });
        });
        if (!a || !b) throw new Error('two runs make two writes');
        const kept = (await Promise.all([one.commit([a]), other.commit([b])])).flat();
        expect(kept.toSorted()).toEqual(['session_busy', 'taken']);
        const won = kept[0] === 'taken' ? a : b;
        expect(await one.unfinished(session_id, '', 10)).toEqual([won.row]);
        expect(await other.session(session_id)).toMatchObject({ history: won.history });
      }
    });

    it('starts the first of two queued runs, without a deadlock between commits', async () => {
      const sessions = ['x', 'y'].map((it) => `${it}-${fresh().run_id}`);
      for (let round = 0; round < 10; round += 1) {
        const waiting = [one, other].map(() =>
          sessions.map((session_id) => append(fresh({ session_id, queued_at: '2026-01-01T00:00:00.000Z' }), ['1'])),
        );
        await one.commit(waiting.flat());
        const begin = ({ row }: Write): Write => ({
          row: { ...row, queued_at: null },
          expect: 1,
          lines: [],
          when: 'first',
        });
        // Each commit has the sessions in another order.
        const begins = waiting.map((writes, n) => (n === 0 ? writes : [...writes].reverse()).map(begin));
        const stores = [one, other];
        const kept = await Promise.all(stores.map((store, n) => store.commit(begins[n] ?? [])));
        expect(kept).toEqual([
          ['taken', 'taken'],
          ['session_busy', 'session_busy'],
        ]);
        const rows = waiting.flat().map(({ row }) => row);
        expect(new Set(await other.commit(rows.map((row) => end(row, 'completed'))))).toEqual(new Set(['taken']));
      }
    });

    sharedDeliveriesContract(
      () => one,
      () => other,
    );

    it('loses nothing where both add to the same sessions and agents, in any order', async () => {
      const shared = ['x', 'y', 'z'].map((it) => `${it}-${fresh().run_id}`);
      const ending = (writer: string, names: string[], round: number): Write[] =>
        names.flatMap((it) => {
          const begun = append(fresh({ session_id: it, agent_name: it }), ['1']);
          const history = [`/${writer}/${round}`];
          return [begun, end(begun.row, 'completed', { history, ended: { tokens: 1, seconds: 0.5 } })];
        });
      await Promise.all(
        Array.from({ length: 20 }, (_, round) => [
          one.commit(ending('one', shared, round)),
          other.commit(ending('other', [...shared].reverse(), round)),
        ]).flat(),
      );
      for (const it of shared) {
        expect((await one.session(it))?.history).toHaveLength(40);
        expect(await other.figures([it])).toEqual([
          { agent_name: it, completed: 40, failed: 0, tokens: 40, seconds: 20 },
        ]);
      }
    });
  });
}
