import { describe, expect, it } from 'vitest';
import type { RunRow, Store, Write } from '../../src/core/store.ts';
import { append, end, fresh, said } from './writes.ts';

const when = 'alone' as const;
const queued_at = '2026-01-01T00:00:00.000Z';

/** The write that lets a queued run begin, where nobody else is at work: the row changes, and nothing is appended. */
const begin = (row: RunRow): Write => ({ row: { ...row, queued_at: null }, expect: row.last, lines: [], when });

/** What every store does with a write that wants its run to be alone in its session. */
export function aloneContract(store: () => Store): void {
  describe('asked that a run is alone in its session', () => {
    const session = (): string => `alone-${fresh().run_id}`;

    it('refuses a run while another has begun, and takes it when that one is over', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1'], { when });
      const second = append(fresh({ session_id }), ['1'], { when });
      expect(await store().commit([first])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['session_busy']);
      const grown = append(first.row, ['2'], { grown: true });
      const awaiting = append({ ...grown.row, status: 'awaiting' }, ['3']);
      for (const write of [grown, awaiting]) {
        expect(await store().commit([write])).toEqual(['taken']);
        expect(await store().commit([second])).toEqual(['session_busy']);
      }
      expect(await store().commit([end(awaiting.row, 'completed')])).toEqual(['taken']);
      expect(await store().commit([second])).toEqual(['taken']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([second.row]);
    });

    it('lets a queued run begin when nobody else is at work', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      const waiting = append(fresh({ session_id, queued_at }), ['1']);
      await store().commit([first, waiting]);
      expect(await store().commit([begin(waiting.row)])).toEqual(['session_busy']);
      expect(await store().run(waiting.row.run_id)).toEqual(waiting.row);
      await store().commit([end(first.row, 'cancelled')]);
      expect(await store().commit([begin(waiting.row)])).toEqual(['taken']);
      expect(await store().run(waiting.row.run_id)).toEqual({ ...waiting.row, queued_at: null });
      const next = append(fresh({ session_id }), ['1'], { when });
      expect(await store().commit([next])).toEqual(['session_busy']);
    });

    it('minds no queued run, no run of another session, not the run itself, and none that is over', async () => {
      const session_id = session();
      const over = append(fresh({ session_id, status: 'failed', finished_at: queued_at }), ['1']);
      const waiting = append(fresh({ session_id, queued_at }), ['1']);
      const elsewhere = append(fresh({ session_id: `${session_id}-too` }), ['1']);
      await store().commit([over, waiting, elsewhere]);
      const first = append(fresh({ session_id }), ['1'], { when });
      const second = append({ ...first.row, status: 'awaiting' }, ['2'], { when });
      const third = append(second.row, ['3'], { when, grown: true });
      for (const write of [first, second, third]) expect(await store().commit([write])).toEqual(['taken']);
      expect(await store().run(first.row.run_id)).toEqual(third.row);
    });

    it('minds no run that was queued again, and none that ended while it was queued', async () => {
      const session_id = session();
      const back = append(fresh({ session_id }), ['1']);
      const never = append(fresh({ session_id, queued_at }), ['1']);
      await store().commit([back, never]);
      await store().commit([append({ ...back.row, queued_at }, []), end(never.row, 'cancelled')]);
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when })])).toEqual(['taken']);
    });

    it('looks at nobody else for a write that does not ask for it', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1'], { when });
      const second = append(fresh({ session_id }), ['1']);
      const third = append(fresh({ session_id, queued_at }), ['1']);
      const { when: _, ...begun } = begin(third.row);
      expect(await store().commit([first, second, third, begun])).toEqual(['taken', 'taken', 'taken', 'taken']);
      // It has become one of several, which is no matter until it asks again.
      expect(await store().commit([append(first.row, ['2'])])).toEqual(['taken']);
    });

    it('keeps nothing of a run that it refuses, and all of what comes with it', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first]);
      const row = fresh({ session_id, agent_name: session_id, due: '2000-01-01T00:00:00.000Z' });
      const { run_id } = row;
      const stamp = { hash: 'h', after: 0, created_at: '2026-01-02', fresh: '2026-01-01' };
      const key = { scope: session_id, key: 'k', run_id, ...stamp };
      const refused = append(row, ['1'], { when, key, journal: ['{}'], state: '/s', ...said(row, 'question') });
      const before = append(fresh({ session_id: `${session_id}-too` }), ['1'], { when });
      const after = append(fresh(), ['1'], { key: { ...key, key: 'l' }, history: ['/after'] });
      const ended = end(refused.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      expect(await store().commit([before, refused, ended, after])).toEqual([
        'taken',
        'session_busy',
        'fenced',
        'taken',
      ]);
      expect(await store().run(run_id)).toBeUndefined();
      expect(await store().input(run_id)).toBeUndefined();
      expect(await store().events(run_id, 0, 10)).toEqual([]);
      expect(await store().journal(run_id)).toEqual([]);
      expect(await store().key(key.scope, 'k')).toBeUndefined();
      expect((await store().resources([`question-of-${run_id}`]))[0]).toBeUndefined();
      expect((await store().session(session_id))?.history ?? []).toEqual([]);
      expect((await store().session(session_id))?.state ?? null).toBeNull();
      expect(await store().figures([session_id])).toEqual([]);
      expect(await store().due('2000-01-01T00:00:00.000Z', 10)).toEqual([]);
      expect(await store().runs({ session_id }, undefined, 10)).toEqual([first.row]);
      expect(await store().run(before.row.run_id)).toEqual(before.row);
      expect(await store().key(key.scope, 'l')).toMatchObject({ run_id });
      expect((await store().session(after.row.session_id))?.history).toEqual(['/after']);
    });

    it('leaves what was under a key before where it refuses the run that brings it', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      const key = { scope: session_id, key: 'k', hash: 'old', run_id: first.row.run_id, after: 0 };
      await store().commit([{ ...first, key: { ...key, created_at: '2026-01-02', fresh: '2026-01-01' } }]);
      const second = append(fresh({ session_id }), ['1'], { when });
      const late = { ...key, hash: 'new', run_id: second.row.run_id, created_at: '2026-01-04', fresh: '2026-01-03' };
      expect(await store().commit([{ ...second, key: late }])).toEqual(['session_busy']);
      expect(await store().key(session_id, 'k')).toMatchObject({ hash: 'old', run_id: first.row.run_id });
    });

    it('takes the writes of one commit in their order', async () => {
      const [session_id, other] = [session(), session()];
      const [a, b, c] = [fresh({ session_id }), fresh({ session_id }), fresh({ session_id })];
      // Whichever was made first: names say nothing about who goes first.
      const [first, second, third] = [c, b, a].map((row) => append(row, ['1'], { when }));
      if (!first || !second || !third) throw new Error('three runs make three writes');
      const waiting = append(fresh({ session_id, queued_at }), ['1']);
      const elsewhere = append(fresh({ session_id: other }), ['1'], { when });
      const writes = [first, second, waiting, elsewhere, end(first.row, 'completed'), begin(waiting.row), third];
      const outcomes = await store().commit(writes);
      expect(outcomes).toEqual(['taken', 'session_busy', 'taken', 'taken', 'taken', 'taken', 'session_busy']);
      expect(await store().unfinished(session_id, '', 10)).toEqual([{ ...waiting.row, queued_at: null }]);
      expect((await store().run(c.run_id))?.status).toBe('completed');
    });

    it('takes a new run where those before it were removed with their session', async () => {
      const session_id = session();
      const first = append(fresh({ session_id }), ['1']);
      await store().commit([first, end(first.row, 'completed')]);
      await store().removeSession(session_id);
      expect(await store().commit([append(fresh({ session_id }), ['1'], { when })])).toEqual(['taken']);
    });
  });
}
