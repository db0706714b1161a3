import { describe, expect, it } from 'vitest';
import type { RunRow, Store, When, Write } from '../../src/core/store.ts';
import { append, end, fresh, messageOf } from './writes.ts';

const when = 'alone' as const;
const queued_at = '2026-01-01T00:00:00.000Z';

/** The write that starts a queued run: the row changes, and nothing is appended. */
const begin = (row: RunRow, when: When): Write => ({
  row: { ...row, queued_at: null },
  expect: row.last,
  lines: [],
  when,
});

/** Writes with a condition on the other runs of their session. */
export function conditionsContract(store: () => Store): void {
  describe('a condition on the other runs of a session', () => {
    const session = (): string => `when-${fresh().run_id}`;
    /** Three runs of a session, the oldest first. */
    const three = (session_id = session()): [RunRow, RunRow, RunRow] => [
      fresh({ session_id }),
      fresh({ session_id, queued_at }),
      fresh({ session_id, queued_at }),
    ];

    it('refuses a run that must be alone until the other one is final', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1'], { when });
      const second = append(fresh({ session_id }), ['1'], { when });
      expect(await store().commit([first])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['session_busy']);
      const grown = append(first.row, ['2'], { grown: true });
      const queued = append({ ...grown.row, queued_at }, []);
      const awaiting = append({ ...grown.row, status: 'awaiting' }, ['3']);
      for (const write of [grown, queued, awaiting]) {
        expect(await store().commit([write])).toEqual(['taken']);
        expect(await store().commit([second])).toEqual(['session_busy']);
      }
      expect(await store().commit([end(awaiting.row, 'completed')])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['taken']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([second.row]);
    });

    it('ignores runs of other sessions, the run itself, and final runs', async () => {
      const session_id = session();
      const over = append(fresh({ session_id, status: 'failed', finished_at: queued_at }), ['1']);
      const never = append(fresh({ session_id, queued_at }), ['1']);
      const elsewhere = append(fresh({ session_id: `${session_id}-too` }), ['1']);
      await store().commit([over, never, elsewhere, end(never.row, 'cancelled')]);
      let { row } = append({ ...fresh({ session_id }), last: -1 }, ['1']);
      for (const when of ['alone', 'first', 'last', 'alone'] as const) {
        const write = append(row, ['1'], { when });
        expect(await store().commit([write])).toEqual(['taken']);
        row = write.row;
      }
      expect(await store().commit([append(row, ['2'], { when, grown: true })])).toEqual(['taken']);
      expect(await store().run(row.run_id)).toEqual({ ...row, last: 5 });
    });

    it('starts the oldest unfinished run of a session, and no other', async () => {
      const [a, b, c] = three().map((row) => append(row, ['1'], { when: 'first' }));
      if (!a || !b || !c) throw new Error('three rows make three writes');
      // The youngest run is created first, when there is no older one. A younger run does not block an older one.
      expect(await store().commit([c, b, a])).toEqual(['taken', 'taken', 'taken']);
      expect(await store().commit([begin(b.row, 'first'), begin(c.row, 'first')])).toEqual([
        'session_busy',
        'session_busy',
      ]);
      expect(await store().run(b.row.run_id)).toEqual(b.row);
      const begins = [begin(c.row, 'first'), end(a.row, 'failed'), begin(c.row, 'first'), begin(b.row, 'first')];
      expect(await store().commit(begins)).toEqual(['session_busy', 'taken', 'session_busy', 'taken']);
      expect(await store().run(b.row.run_id)).toEqual({ ...b.row, queued_at: null });
      const { session_id } = a.row;
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when: 'first' })])).toEqual(['session_busy']);
    });

    it('accepts the youngest unfinished run of a session, and no other', async () => {
      const [a, b, c] = three();
      const [first, second, third] = [a, b, c].map((row) => append(row, ['1'], { when: 'last' }));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      expect(await store().commit([first, third, second])).toEqual(['taken', 'taken', 'session_busy']);
      expect(await store().run(b.run_id)).toBeUndefined();
      expect(await store().commit([begin(first.row, 'last'), end(third.row, 'cancelled'), second])).toEqual([
        'session_busy',
        'taken',
        'taken',
      ]);
      expect(await store().commit([append(first.row, ['2'], { when: 'last' })])).toEqual(['session_busy']);
      expect(await store().commit([end(first.row, 'failed', { when: 'last' })])).toEqual(['session_busy']);
      expect(await store().run(a.run_id)).toEqual(first.row);
    });

    it('does not apply to a write without one', async () => {
      const [a, b, c] = three();
      const [first, second, third] = [a, b, c].map((row) => append(row, ['1']));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      const { when: _, ...begun } = begin(third.row, 'first');
      expect(await store().commit([first, second, third, begun])).toEqual(['taken', 'taken', 'taken', 'taken']);
      expect(await store().commit([append(first.row, ['2'])])).toEqual(['taken']);
    });

    it('keeps nothing of a refused run, and the other writes of its commit', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first]);
      const row = fresh({ session_id, agent_name: session_id, due: '2000-01-01T00:00:00.000Z' });
      const { run_id } = row;
      const stamp = { hash: 'h', after: 0, created_at: '2026-01-02', fresh: '2026-01-01' };
      const key = { scope: session_id, key: 'k', run_id, ...stamp };
      const refused = append(row, ['1'], { when, key, journal: ['{}'], state: '/s', ...messageOf(row, 'question') });
      const before = append(fresh({ session_id: `${session_id}-too` }), ['1'], { when });
      const after = append(fresh(), ['1'], { key: { ...key, key: 'l' }, history: ['/after'] });
      const ended = end(refused.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      const outcomes = await store().commit([before, refused, ended, after]);
      expect(outcomes).toEqual(['taken', 'session_busy', 'fenced', 'taken']);
      expect(await store().run(run_id)).toBeUndefined();
      expect(await store().input(run_id)).toBeUndefined();
      expect(await store().events(run_id, 0, 10)).toEqual([]);
      expect(await store().journal(run_id)).toEqual([]);
      expect(await store().key(key.scope, 'k')).toBeUndefined();
      expect(await store().resources([`question-of-${run_id}`])).toEqual([undefined]);
      expect((await store().session(session_id))?.history ?? []).toEqual([]);
      expect((await store().session(session_id))?.state ?? null).toBeNull();
      expect(await store().figures([session_id])).toEqual([]);
      expect(await store().due('2000-01-01T00:00:00.000Z', 10)).toEqual([]);
      expect(await store().runs({ session_id }, undefined, 10)).toEqual([first.row]);
      expect(await store().run(before.row.run_id)).toEqual(before.row);
      expect(await store().key(key.scope, 'l')).toMatchObject({ run_id });
      expect((await store().session(after.row.session_id))?.history).toEqual(['/after']);
    });

    it('keeps the former value of a key when it refuses the run with that key', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      const key = { scope: session_id, key: 'k', hash: 'old', run_id: first.row.run_id, after: 0 };
      await store().commit([{ ...first, key: { ...key, created_at: '2026-01-02', fresh: '2026-01-01' } }]);
      const second = append(fresh({ session_id }), ['1'], { when });
      const late = { ...key, hash: 'new', run_id: second.row.run_id, created_at: '2026-01-04', fresh: '2026-01-03' };
      expect(await store().commit([{ ...second, key: late }])).toEqual(['session_busy']);
      expect(await store().key(session_id, 'k')).toMatchObject({ hash: 'old', run_id: first.row.run_id });
    });

    it('sees the writes of one commit in their order', async () => {
      const [session_id, other] = [session(), session()];
      const [first, second, third] = three(session_id).map((row) => append(row, ['1'], { when }));
      if (!first || !second || !third) throw new Error('three rows make three writes');
      const elsewhere = append(fresh({ session_id: other }), ['1'], { when });
      const writes = [third, first, elsewhere, end(third.row, 'completed'), second, begin(second.row, 'alone'), first];
      const outcomes = await store().commit(writes);
      expect(outcomes).toEqual(['taken', 'session_busy', 'taken', 'taken', 'taken', 'taken', 'session_busy']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([{ ...second.row, queued_at: null }]);
      expect((await store().run(third.row.run_id))?.status).toBe('completed');
    });

    it('accepts a new run after the earlier ones were removed with their session', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first, end(first.row, 'completed')]);
      expect(await store().removeSession(session_id)).toBe(true);
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when })])).toEqual(['taken']);
    });
  });
}
