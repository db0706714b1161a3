import { describe, expect, it } from 'vitest';
import type { RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Resource } from '../../src/core/ports/session-store.ts';
import type { Cutoffs, Store } from '../../src/core/ports/store.ts';
import { append, end, fresh, messageOf, numbered, type TestWrite } from './writes.ts';

const past = '2000-01-01T00:00:00.000Z';
const future = '2999-01-01T00:00:00.000Z';

const asked = (row: RunRow): TestWrite => append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });

/** A state of a session, and the write that makes it the current one. */
function stateOf(session_id: string): { readonly resource: Resource; readonly kept: Partial<Write> } {
  const resource_id = `state-${fresh().run_id}`;
  const resource = { resource_id, session_id, run_id: null, content_type: 'application/json', body: '{}' };
  return { resource, kept: { resources: [resource], state: `/resources/${resource_id}` } };
}

/** Sessions in every store: their state, their removal, and the refusal to remove unfinished runs. */
export function sessionsContract(store: () => Store): void {
  it('adds to a session’s history in the order of the commits, each URL once', async () => {
    const session_id = `shared-${Date.now()}`;
    const writes = [['/resources/1', 'https://a/2'], ['https://a/2', '/resources/3'], []].map((history) =>
      append(fresh({ session_id }), ['1'], { history }),
    );
    for (const write of writes) await store().commit([write]);
    expect(await store().session(session_id)).toEqual({
      session_id,
      history: ['/resources/1', 'https://a/2', '/resources/3'],
      state: null,
    });
    await store().commit([append(fresh({ session_id }), ['1'], { state: '/resources/9' })]);
    expect((await store().session(session_id))?.state).toBe('/resources/9');
    expect(await store().session('unknown')).toBeUndefined();
  });

  it('loses no history when many runs of one session end at the same time', async () => {
    const session_id = `busy-${Date.now()}`;
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        store().commit([append(fresh({ session_id }), ['1'], { history: [`/resources/${n}`] })]),
      ),
    );
    expect((await store().session(session_id))?.history).toHaveLength(50);
  });

  it('keeps resources to the byte, and reads many at once', async () => {
    const row = fresh();
    const resource = {
      resource_id: `r-${Date.now()}`,
      session_id: row.session_id,
      run_id: null,
      content_type: 'application/json',
      body: '{"ü":"\u2028😀"}',
    };
    await store().commit([append(row, ['1'], { resources: [resource] })]);
    expect((await store().resources([resource.resource_id]))[0]).toEqual(resource);
    const { resource_id } = resource;
    expect(await store().resources(['unknown', resource_id, 'unknown too', resource_id])).toEqual([
      undefined,
      resource,
      undefined,
      resource,
    ]);
    expect(await store().resources([])).toEqual([]);
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

  const sweep = async (before: Omit<Cutoffs, 'keys'> = {}): Promise<number> => {
    let calls = 1;
    while (await store().sweep({ keys: '', ...before })) calls += 1;
    return calls;
  };
  const kept = async (ids: readonly string[]): Promise<string[]> =>
    (await store().resources(ids)).flatMap((one) => one?.resource_id ?? []);

  it('creates the session of a run with its first write, with an empty history', async () => {
    const row = fresh();
    await store().commit([append(row, ['1'])]);
    expect(await store().session(row.session_id)).toEqual({ session_id: row.session_id, history: [], state: null });
  });

  it('replaces a resource of a run with the next one of its id, and deletes that with the run', async () => {
    const { row } = append(fresh(), ['1']);
    const { run_id, session_id } = row;
    const first = { resource_id: `last-of-${run_id}`, session_id, run_id, content_type: 'a/b', body: '"first"' };
    const next = { ...first, body: '"next"' };
    const rested = append(row, [], { resources: [first] });
    const restedAgain = append({ ...row, epoch: 2 }, [], { from: 1, resources: [next] });
    await store().commit([append({ ...row, last: 0 }, ['1'])]);
    expect(await store().commit([rested])).toEqual(['taken']);
    expect(await store().resources([first.resource_id])).toEqual([first]);
    expect(await store().commit([restedAgain])).toEqual(['taken']);
    expect(await store().resources([first.resource_id])).toEqual([next]);
    expect((await store().session(session_id))?.history).toEqual([]);
    await store().commit([end(restedAgain.row, 'completed')]);
    expect(await store().remove(run_id)).toBe(true);
    await sweep();
    expect(await kept([first.resource_id])).toEqual([]);
  });

  describe('the state of a session', () => {
    it('keeps only the last of 200 states, in one commit or in many', async () => {
      const session_id = `states-${fresh().run_id}`;
      const states = Array.from({ length: 200 }, () => stateOf(session_id));
      let { row } = append(fresh({ session_id }), ['1']);
      await store().commit([append({ ...row, last: 0 }, ['1'])]);
      for (let n = 0; n < states.length; n += 20) {
        const writes = states.slice(n, n + 20).map(({ kept }) => {
          const write = append(row, ['2'], kept);
          row = write.row;
          return write;
        });
        expect(new Set(await store().commit(writes))).toEqual(new Set(['taken']));
      }
      const last = states.at(-1)?.resource;
      expect(await kept(states.map(({ resource }) => resource.resource_id))).toEqual([last?.resource_id]);
      expect((await store().session(session_id))?.state).toBe(`/resources/${last?.resource_id}`);
    });

    it('keeps a state that is set again, and resources that were no state of this session', async () => {
      const [session_id, other] = [`own-${fresh().run_id}`, `other-${fresh().run_id}`];
      const [own, foreign] = [stateOf(session_id), stateOf(other)];
      const first = append(fresh({ session_id: other }), ['1'], foreign.kept);
      const message = messageOf(fresh({ session_id }), 'message');
      const row = fresh({ session_id });
      const states = [
        message.history?.[0],
        foreign.kept.state,
        'https://elsewhere/state',
        own.kept.state,
        own.kept.state,
      ];
      const writes = [append(row, ['1'], message)];
      for (const state of states) {
        const resources = state === own.kept.state ? own.kept.resources : undefined;
        const isAgain = writes.at(-1)?.state === state;
        const more = { ...(state !== undefined && { state }), ...(resources && !isAgain && { resources }) };
        writes.push(append(writes.at(-1)?.row ?? row, ['2'], more));
      }
      expect(new Set(await store().commit([first, ...writes]))).toEqual(new Set(['taken']));
      const ids = [message.resources?.[0]?.resource_id ?? '', foreign.resource.resource_id, own.resource.resource_id];
      expect(await kept(ids)).toEqual(ids);
      expect((await store().session(other))?.state).toBe(foreign.kept.state);
      expect((await store().session(session_id))?.state).toBe(own.kept.state);
    });
  });

  describe('asked to remove an unfinished run', () => {
    it.for(['created', 'in-progress', 'awaiting', 'cancelling'] as const)(
      'refuses a run that is %s',
      async (status) => {
        const write = asked(fresh({ status }));
        await store().commit([write]);
        expect(await store().remove(write.row.run_id)).toBe(false);
        expect(await store().removeSession(write.row.session_id)).toBe(false);
        await sweep();
        expect(await store().run(write.row.run_id)).toEqual(write.row);
        expect(numbered(await store().events(write.row.run_id, 0, 10))).toEqual([[1, '1']]);
        expect(await store().journal(write.row.run_id)).toEqual(['{}']);
        expect((await store().session(write.row.session_id))?.history).toEqual(write.history);
        expect(await kept([`question-of-${write.row.run_id}`])).toHaveLength(1);
        expect(await store().commit([end(write.row, 'failed')])).toEqual(['taken']);
        expect(await store().remove(write.row.run_id)).toBe(true);
        expect(await store().run(write.row.run_id)).toBeUndefined();
        expect(await store().remove(write.row.run_id)).toBe(true);
      },
    );

    it('refuses a session for one unfinished run among many, and keeps all', async () => {
      const session_id = `going-on-${fresh().run_id}`;
      const writes = Array.from({ length: 40 }, () => asked(fresh({ session_id })));
      const going = asked(fresh({ session_id, queued_at: past }));
      await store().commit([...writes.slice(0, 20), going, ...writes.slice(20)]);
      await store().commit(writes.map(({ row }) => end(row, 'completed')));
      expect(await store().removeSession(session_id)).toBe(false);
      await sweep();
      expect(await store().runs({ session_id }, undefined, 100)).toHaveLength(41);
      expect((await store().session(session_id))?.history).toHaveLength(41);
      expect(await kept([going, ...writes].map(({ row }) => `question-of-${row.run_id}`))).toHaveLength(41);
      expect(numbered(await store().events(writes[0]?.row.run_id ?? '', 0, 10))).toHaveLength(2);
      await store().commit([end(going.row, 'cancelled')]);
      expect(await store().removeSession(session_id)).toBe(true);
      expect(await store().session(session_id)).toBeUndefined();
    });

    it('accepts the removal of an unknown run or session', async () => {
      expect(await store().remove('unknown')).toBe(true);
      expect(await store().removeSession('nowhere')).toBe(true);
    });
  });

  describe('removing a session of thousands of runs', () => {
    it('hides the session at once, and clears it step by step', async () => {
      await sweep();
      const session_id = `large-${fresh().run_id}`;
      const state = stateOf(session_id);
      const writes = Array.from({ length: 3_000 }, () => asked(fresh({ session_id })));
      await store().commit([...writes, append(writes.at(-1)?.row ?? fresh(), ['2'], state.kept)]);
      const rows = await store().unfinished(session_id, '', 5_000);
      await store().commit(rows.map((row) => end(row, 'completed')));
      expect(await store().removeSession(session_id)).toBe(true);
      expect(await store().session(session_id)).toBeUndefined();
      expect(await store().runs({ session_id }, undefined, 10)).toEqual([]);
      expect(await store().unfinished(session_id, '', 10)).toEqual([]);
      expect(await store().count(session_id)).toBe(0);
      expect(await sweep()).toBeGreaterThan(2);
      for (const { row } of [writes[0], writes[1_234], writes.at(-1)].flatMap((one) => one ?? [])) {
        expect(await store().run(row.run_id)).toBeUndefined();
        expect(await store().events(row.run_id, 0, 10)).toEqual([]);
        expect(await store().journal(row.run_id)).toEqual([]);
      }
      const ids = writes.map(({ row }) => `question-of-${row.run_id}`);
      expect(await kept([...ids, state.resource.resource_id])).toEqual([]);
      expect(await store().runs({ session_id }, undefined, 10)).toEqual([]);
    });

    it('keeps a new session with the same id that is created before all is cleared', async () => {
      const session_id = `again-${fresh().run_id}`;
      const old = asked(fresh({ session_id }));
      await store().commit([old, end(old.row, 'completed', stateOf(session_id).kept)]);
      expect(await store().removeSession(session_id)).toBe(true);
      const next = asked(fresh({ session_id }));
      const state = stateOf(session_id);
      expect(await store().commit([{ ...next, when: 'alone' }, append(next.row, ['2'], state.kept)])).toEqual([
        'taken',
        'taken',
      ]);
      const now = { session_id, history: next.history, state: state.kept.state };
      expect(await store().session(session_id)).toEqual(now);
      await sweep();
      expect(await store().session(session_id)).toEqual(now);
      expect((await store().runs({ session_id }, undefined, 10)).map(({ run_id }) => run_id)).toEqual([
        next.row.run_id,
      ]);
      expect(numbered(await store().events(next.row.run_id, 0, 10))).toHaveLength(2);
      expect(await store().journal(next.row.run_id)).toEqual(['{}']);
      const ids = [`question-of-${next.row.run_id}`, state.resource.resource_id];
      expect(await kept([`question-of-${old.row.run_id}`, ...ids])).toEqual(ids);
      expect(await store().run(old.row.run_id)).toBeUndefined();
    });
  });

  describe('clearing idle sessions', () => {
    const ended = (row: RunRow, finished_at: string): TestWrite[] => {
      const first = asked(row);
      return [first, append({ ...first.row, status: 'completed', finished_at }, ['2'])];
    };

    it('keeps the messages of a session until it is old, and then clears all of it', async () => {
      const session_id = `left-${fresh().run_id}`;
      const state = stateOf(session_id);
      const row = fresh({ session_id });
      const [first, last] = ended(row, '2026-01-01T00:00:01.000Z');
      if (!first || !last) throw new Error('a run has a beginning and an end');
      await store().commit([first, { ...last, ...state.kept }]);
      const ids = [`question-of-${row.run_id}`, state.resource.resource_id];
      await sweep({ sessions: future });
      expect(await store().run(row.run_id)).toEqual(last.row);
      for (const sessions of [undefined, past]) {
        await sweep({ runs: future, ...(sessions && { sessions }) });
        expect(await store().run(row.run_id)).toBeUndefined();
        expect(await store().session(session_id)).toEqual({
          session_id,
          history: first.history,
          state: state.kept.state,
        });
        expect(await kept(ids)).toEqual(ids);
      }
      await sweep({ sessions: future });
      expect(await store().session(session_id)).toBeUndefined();
      expect(await kept(ids)).toEqual([]);
    });

    it('clears a session whose only run was removed', async () => {
      const session_id = `removed-${fresh().run_id}`;
      const state = stateOf(session_id);
      const row = fresh({ session_id });
      const [first, last] = ended(row, '2026-01-01T00:00:01.000Z');
      if (!first || !last) throw new Error('a run has a beginning and an end');
      await store().commit([
        { ...first, history: [...(first.history ?? []), 'https://a/b'] },
        { ...last, ...state.kept },
      ]);
      expect(await store().remove(row.run_id)).toBe(true);
      expect((await store().session(session_id))?.history).toEqual(['https://a/b']);
      await sweep({ sessions: future });
      expect(await store().session(session_id)).toBeUndefined();
      expect(await kept([state.resource.resource_id])).toEqual([]);
    });

    it('keeps a session that has runs, or was used again', async () => {
      const [busy, again] = [`busy-${fresh().run_id}`, `again-${fresh().run_id}`];
      const going = asked(fresh({ session_id: busy }));
      const [early, late] = ['2026-01-01T00:00:02.000Z', '2026-01-01T00:10:02.000Z'];
      const first = ended(fresh({ session_id: again }), early);
      await store().commit([going, ...ended(fresh({ session_id: busy }), early), ...first]);
      const before = { runs: '2026-01-01T00:20:00.000Z', sessions: '2026-01-01T00:00:01.000Z' };
      await sweep(before);
      expect((await store().session(busy))?.history).toHaveLength(2);
      expect((await store().session(again))?.history).toHaveLength(1);
      const second = ended(fresh({ session_id: again, created_at: '2026-01-01T00:10:00.000Z' }), late);
      await store().commit(second);
      await sweep({ sessions: future });
      expect((await store().session(again))?.history).toHaveLength(2);
      await sweep({ ...before, sessions: '2026-01-01T00:05:00.000Z' });
      expect(await store().run(second[0]?.row.run_id ?? '')).toBeUndefined();
      expect((await store().session(again))?.history).toHaveLength(2);
      await sweep({ sessions: future });
      expect(await store().session(again)).toBeUndefined();
      expect((await store().session(busy))?.history).toHaveLength(2);
      expect(await store().run(going.row.run_id)).toEqual(going.row);
    });

    it('clears old runs however many older runs await', async () => {
      const agent_name = `behind-${fresh().run_id}`;
      const awaiting = Array.from({ length: 300 }, () => append(fresh({ agent_name, status: 'awaiting' }), ['1']));
      const old = Array.from({ length: 250 }, () => ended(fresh({ agent_name }), past)).flat();
      await store().commit([...awaiting, ...old]);
      await sweep({ runs: '2001-01-01T00:00:00.000Z' });
      expect(await store().runs({ agent_name }, undefined, 1_000)).toHaveLength(300);
      await store().commit(awaiting.map(({ row }) => end(row, 'cancelled')));
    });
  });
}
