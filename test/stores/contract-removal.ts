import { expect, it } from 'vitest';
import type { RunRow, Store } from '../../src/core/store.ts';
import { append, end, fresh, messageOf, numbered, type TestWrite } from './writes.ts';

/** What every store removes, and what it keeps. */
export function removalContract(store: () => Store): void {
  it('removes a final run with its log, its journal and its messages, and keeps the others', async () => {
    const session_id = `removing-${fresh().run_id}`;
    const asked = (row: RunRow): TestWrite => append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });
    const [a, b] = [asked(fresh({ session_id })), asked(fresh({ session_id }))];
    const state = { resource_id: `state-${session_id}`, session_id, run_id: null, content_type: 'a/b', body: '1' };
    await store().commit([a, b, end(a.row, 'completed', { ...messageOf(a.row, 'answer'), state: '/s' })]);
    await store().commit([append(b.row, ['2'], { resources: [state] })]);
    await store().remove(a.row.run_id);
    while (await store().sweep({ keys: '' })) await Promise.resolve();
    expect(await store().run(a.row.run_id)).toBeUndefined();
    expect(await store().input(a.row.run_id)).toBeUndefined();
    expect(await store().events(a.row.run_id, 0, 10)).toEqual([]);
    expect(await store().journal(a.row.run_id)).toEqual([]);
    expect((await store().resources([`question-of-${a.row.run_id}`]))[0]).toBeUndefined();
    expect((await store().resources([`answer-of-${a.row.run_id}`]))[0]).toBeUndefined();
    expect((await store().runs({ session_id }, undefined, 10)).map(({ run_id }) => run_id)).toEqual([b.row.run_id]);
    expect(await store().session(session_id)).toEqual({ session_id, state: '/s', history: b.history });
    expect((await store().resources([`question-of-${b.row.run_id}`]))[0]).toBeDefined();
    expect((await store().resources([state.resource_id]))[0]).toEqual(state);
    expect(await store().journal(b.row.run_id)).toEqual(['{}']);
    expect(numbered(await store().events(b.row.run_id, 0, 10))).toHaveLength(2);
    await store().remove('unknown');
  });

  it('removes a session with everything in it', async () => {
    const row = fresh({ agent_name: 'gone' });
    const write = append(row, ['1'], { journal: ['{}'], state: '/s', ...messageOf(row, 'question') });
    const other = append(fresh(), ['1'], { history: ['/other'] });
    await store().commit([write, end(write.row, 'failed'), other]);
    await store().removeSession(row.session_id);
    while (await store().sweep({ keys: '' })) await Promise.resolve();
    expect(await store().session(row.session_id)).toBeUndefined();
    expect(await store().run(row.run_id)).toBeUndefined();
    expect(await store().events(row.run_id, 0, 10)).toEqual([]);
    expect(await store().journal(row.run_id)).toEqual([]);
    expect((await store().resources([`question-of-${row.run_id}`]))[0]).toBeUndefined();
    expect(await store().runs({ agent_name: row.agent_name }, undefined, 10)).toEqual([]);
    expect((await store().session(other.row.session_id))?.history).toEqual(['/other']);
  });

  it('has none of the resources of a removed session before a sweep, and those of a new session of its name', async () => {
    const row = fresh();
    const { session_id, run_id } = row;
    const all = Array.from({ length: 300 }, (_, n) => {
      const of = { session_id, run_id: n % 2 === 0 ? run_id : null };
      return { resource_id: `${n}-of-${run_id}`, ...of, content_type: 'a/b', body: '1' };
    });
    const ids = all.map(({ resource_id }) => resource_id);
    const begun = append(row, ['1'], { resources: all, state: `/resources/${ids[1]}` });
    await store().commit([begun, end(begun.row, 'completed')]);
    expect((await store().resources(ids)).filter((one) => one !== undefined)).toHaveLength(300);
    expect(await store().removeSession(session_id)).toBe(true);
    expect((await store().resources(ids)).filter((one) => one !== undefined)).toEqual([]);
    const next = fresh({ session_id });
    await store().commit([append(next, ['1'], messageOf(next, 'question'))]);
    const question = `question-of-${next.run_id}`;
    expect(await store().resources([ids[0] ?? '', question])).toMatchObject([undefined, { resource_id: question }]);
    while (await store().sweep({ keys: '' })) await Promise.resolve();
    expect(await store().resources([question])).toMatchObject([{ resource_id: question }]);
  });

  it('clears runs that ended long ago, and keeps their messages', async () => {
    const agent_name = `old-${fresh().run_id}`;
    const row = fresh({ agent_name });
    const old = append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });
    const recent = append(fresh({ agent_name }), ['1']);
    const going = append(fresh({ agent_name }), ['1']);
    const late = append({ ...recent.row, status: 'failed', finished_at: '2026-01-01T00:00:03.000Z' }, ['2']);
    await store().commit([old, recent, going, end(old.row, 'completed'), late]);
    const before = { runs: '2026-01-01T00:00:02.000Z', keys: '' };
    while (await store().sweep(before)) await Promise.resolve();
    const left = await store().runs({ agent_name }, undefined, 10);
    expect(left.map(({ run_id }) => run_id)).toEqual([going.row.run_id, recent.row.run_id]);
    expect(await store().run(row.run_id)).toBeUndefined();
    expect(await store().events(row.run_id, 0, 10)).toEqual([]);
    expect(await store().journal(row.run_id)).toEqual([]);
    expect((await store().session(row.session_id))?.history).toEqual(old.history);
    expect((await store().resources([`question-of-${row.run_id}`]))[0]).toBeDefined();
  });
}
