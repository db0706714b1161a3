import { describe, expect, it } from 'vitest';
import type { Outcome, RunRow, Store, Write } from '../../src/core/store.ts';
import { append, end, fresh, input, messageOf, numbered, type TestWrite } from './writes.ts';

const times = { created_at: '2026-01-02', fresh: '2026-01-01' };

/** A write with an Idempotency-Key of that scope. */
const keyed = (row: RunRow, scope: string): TestWrite => ({
  ...append(row, ['1'], { ...messageOf(row, 'question'), journal: ['{}'] }),
  key: { scope, key: 'k', hash: 'h', run_id: row.run_id, after: 0, ...times },
});

/** Values that some stores can keep and others cannot. */
const odd: readonly [name: string, write: () => TestWrite][] = [
  ['a NUL character in the agent’s name', () => append(fresh({ agent_name: 'a\0b' }), ['1'])],
  ['an agent’s name of 10,000 characters', () => append(fresh({ agent_name: unlike(10_000) }), ['1'])],
  ['a session’s id of 10,000 characters', () => append(fresh({ session_id: unlike(10_000) }), ['1'], { history: [] })],
  ['half of a surrogate pair in a session’s id', () => append(fresh({ session_id: 'a\ud800' }), ['1'])],
  ['a NUL character in an event', () => append(fresh(), ['"\0"'])],
  ['half of a surrogate pair in an event', () => append(fresh(), ['"\udc00"'])],
  ['a NUL character in the journal', () => append(fresh(), ['1'], { journal: ['"\0"'] })],
  [
    'a NUL character in the input',
    () => append(fresh(), ['1'], { input: [{ ...input[0], role: 'user', parts: [part('\0')] }] }),
  ],
  ['a NUL character in a message', () => append(fresh(), ['1'], resource({ body: '"\0\ud800"' }))],
  ['a NUL character in a content type', () => append(fresh(), ['1'], resource({ content_type: 'a/\0' }))],
  ['a NUL character in the URL of a state', () => append(fresh(), ['1'], { state: 'https://a/\0' })],
  ['a URL of 20,000 characters', () => append(fresh(), ['1'], { history: [`https://a/${unlike(20_000)}`] })],
  ['a NUL character in a key', () => ({ ...keyed(fresh(), 'a\0b') })],
  ['a key of 10,000 characters', () => ({ ...keyed(fresh(), unlike(10_000)) })],
  ['a resource that exists already', () => append(fresh(), ['1'], resource({ resource_id: 'twice' }))],
  ['a due time that is none', () => append(fresh({ due: 'never\0' }), ['1'])],
];

/** Text that does not compress. */
function unlike(length: number): string {
  let text = '';
  while (text.length < length) text += fresh().run_id.slice(14) + Math.random().toString(36).slice(2);
  return text.slice(0, length);
}

const part = (content: string) => ({ content_type: 'text/plain', content });

const resource = (more: { resource_id?: string; body?: string; content_type?: string }): Partial<Write> => ({
  resources: [
    {
      resource_id: fresh().run_id,
      session_id: 's',
      run_id: null,
      content_type: 'application/json',
      body: '1',
      ...more,
    },
  ],
});

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

const isRejected = (outcome: Outcome | undefined): boolean => typeof outcome === 'object' && 'rejected' in outcome;

/** The outcomes of a commit, and the independence of its writes. */
export function outcomesContract(store: () => Store): void {
  describe('the outcomes of a commit', () => {
    it('come without a change of the writes themselves, of which their caller keeps lists', async () => {
      const created = keyed(fresh(), `frozen-${fresh().run_id}`);
      const grown = append({ ...created.row, epoch: 1 }, ['2', '3'], {
        ...messageOf(created.row, 'answer'),
        ...resource({}),
        journal: ['{}', '{}'],
        state: '/resources/none',
      });
      const ended = end(grown.row, 'completed', { ended: { tokens: 1, seconds: 1 } });
      for (const write of [created, grown, ended]) {
        expect(await store().commit([frozen(write)])).toEqual(['taken']);
      }
    });

    it('are in the order of the writes, and only applied writes change anything', async () => {
      const session_id = `outcomes-${fresh().run_id}`;
      const begun = append(fresh({ session_id }), ['1']);
      const first = keyed(fresh(), session_id);
      await store().commit([begun, first]);
      const again = keyed(fresh({ agent_name: session_id }), session_id);
      const stale = append({ ...begun.row, epoch: 9 }, ['2'], { history: ['/stale'] });
      const busy = append(fresh({ session_id }), ['1'], { when: 'alone', history: ['/busy'] });
      const good = append(fresh(), ['1']);
      expect(await store().commit([again, stale, good, busy])).toEqual(['key_used', 'fenced', 'taken', 'session_busy']);
      for (const { row } of [again, busy]) {
        expect(await store().run(row.run_id)).toBeUndefined();
        expect(await store().input(row.run_id)).toBeUndefined();
        expect(await store().events(row.run_id, 0, 10)).toEqual([]);
        expect(await store().journal(row.run_id)).toEqual([]);
      }
      expect(await store().resources([`question-of-${again.row.run_id}`])).toEqual([undefined]);
      expect((await store().session(again.row.session_id))?.history ?? []).toEqual([]);
      expect((await store().session(session_id))?.history ?? []).toEqual([]);
      expect(await store().runs({ agent_name: session_id }, undefined, 10)).toEqual([]);
      expect(await store().key(session_id, 'k')).toMatchObject({ run_id: first.row.run_id });
      expect(await store().run(begun.row.run_id)).toEqual(begun.row);
      expect(await store().run(good.row.run_id)).toEqual(good.row);
      expect(await store().count(session_id)).toBe(1);
    });

    it('keep the sums of an agent finite, whatever figures its runs report', async () => {
      const agent_name = `sums-${fresh().run_id}`;
      const other = `${agent_name}-too`;
      const huge = (): TestWrite[] => {
        const first = append(fresh({ agent_name }), ['1']);
        return [first, end(first.row, 'completed', { ended: { tokens: 1.7e308, seconds: 1.7e308 } })];
      };
      const usual = append(fresh({ agent_name: other }), ['1']);
      const writes = [...huge(), ...huge(), usual, end(usual.row, 'completed', { ended: { tokens: 2, seconds: 1 } })];
      expect(await store().commit(writes)).toEqual(Array(6).fill('taken'));
      expect(await store().commit(huge())).toEqual(['taken', 'taken']);
      const [sums] = await store().figures([agent_name]);
      expect(sums?.completed).toBe(3);
      for (const sum of [sums?.tokens, sums?.seconds]) {
        expect(sum).toBeGreaterThanOrEqual(1.7e308);
        expect(sum).toBeLessThan(Number.POSITIVE_INFINITY);
      }
      expect(await store().figures([other])).toEqual([
        { agent_name: other, completed: 1, failed: 0, tokens: 2, seconds: 1 },
      ]);
    });

    it.for(odd)('are taken or rejected for %s, and taken for the other writes', async ([, write]) => {
      await store().commit([append(fresh(), ['1'], resource({ resource_id: 'twice' }))]);
      const running = append(fresh(), ['1']);
      await store().commit([running]);
      const one = write();
      const before = append(running.row, ['2'], { grown: true });
      const after = append(fresh(), ['1'], { history: ['/after'] });
      const outcomes = await store().commit([before, one, after]);
      expect([outcomes[0], outcomes[2]]).toEqual(['taken', 'taken']);
      if (outcomes[1] === 'taken') {
        expect((await store().run(one.row.run_id))?.last).toBe(1);
      } else {
        expect(isRejected(outcomes[1])).toBe(true);
        expect(await store().run(one.row.run_id)).toBeUndefined();
        expect(await store().events(one.row.run_id, 0, 10)).toEqual([]);
        expect(await store().journal(one.row.run_id)).toEqual([]);
      }
      const more = append(before.row, ['3'], { grown: true });
      expect(await store().commit([more])).toEqual(['taken']);
      expect(numbered(await store().events(more.row.run_id, 0, 10))).toHaveLength(3);
      expect((await store().session(after.row.session_id))?.history).toEqual(['/after']);
      const unfinished = await store().unfinished(undefined, running.row.run_id, 1000);
      expect(unfinished.map(({ run_id }) => run_id)).toContain(after.row.run_id);
      expect(await store().due('2025-12-31T00:00:00.000Z', 10)).toEqual([]);
    });
  });
}
