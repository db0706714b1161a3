import { describe, expect, it } from 'vitest';
import type { Key, RunRow, Write } from '../../src/core/ports/run-store.ts';
import type { Cutoffs, Store } from '../../src/core/ports/store.ts';
import { append, end, fresh, messageOf, type TestWrite } from './writes.ts';

const future = '2999-01-01T00:00:00.000Z';

/** The row of a new run of an owner, in a session of its own. */
export function ownedRow(owner: string, more: Partial<RunRow> = {}): RunRow {
  const row = fresh(more);
  const principal = JSON.stringify({ id: owner, kind: 'key', scopes: ['admin'] });
  return { ...row, owner, principal, session_id: `${owner} ${more.session_id ?? row.session_id}` };
}

/** An Idempotency-Key of an owner, or of none. */
export const keyOf = ({ owner, run_id }: RunRow, name = 'k'): Key & { readonly fresh: string } => ({
  scope: owner === null ? run_id : `${owner} runs`,
  key: name,
  hash: 'h',
  run_id,
  after: 0,
  created_at: '2026-01-02T00:00:00.000Z',
  fresh: '2026-01-01T00:00:00.000Z',
});

/** The writes of a run from its beginning to its end. */
export const wholeRun = (
  row: RunRow,
  status: RunRow['status'] = 'completed',
  more: Partial<Write> = {},
): TestWrite[] => {
  const first = append(row, ['1'], { journal: ['{}'], ...messageOf(row, 'question') });
  return [first, end(first.row, status, { ended: { tokens: 2, seconds: 1 }, ...more })];
};

/** What every store keeps for the owners of runs. */
export function ownersContract(store: () => Store): void {
  const names = (): [string, string] => {
    const { run_id } = fresh();
    return [`key:a-${run_id}`, `tenant:b-${run_id}`];
  };
  const sweep = async (before: Omit<Cutoffs, 'keys'> & { keys?: string } = {}): Promise<void> => {
    while (await store().sweep({ keys: '', ...before })) await Promise.resolve();
  };
  const listed = async (...args: Parameters<Store['runs']>): Promise<string[]> =>
    (await store().runs(...args)).map(({ run_id }) => run_id);
  const idOf = ({ row }: TestWrite): string => row.run_id;

  describe('with owners', () => {
    it('keeps the principal of a run, and changes its trace context', async () => {
      const first = append(ownedRow('key:alice', { trace: '00-a-b-01' }), ['1']);
      await store().commit([first]);
      expect(await store().run(first.row.run_id)).toEqual(first.row);
      const grown = append(first.row, ['2'], { grown: true });
      const next = append({ ...grown.row, status: 'awaiting', trace: '00-a-c-01 vendor=1' }, ['3']);
      expect(await store().commit([grown, next])).toEqual(['taken', 'taken']);
      expect(await store().run(first.row.run_id)).toEqual(next.row);
      await store().commit([end({ ...next.row, trace: null }, 'completed')]);
      expect(await store().run(first.row.run_id)).toMatchObject({ trace: null, principal: first.row.principal });
    });

    it('lists the runs of an owner, also by agent, session and status, from any run on', async () => {
      const [a, b] = names();
      const session_id = 'chosen';
      const made = (owner: string, more: Partial<RunRow> = {}): TestWrite => append(ownedRow(owner, more), ['1']);
      const one = made(a, { session_id, agent_name: 'x' });
      const other = made(b, { session_id, agent_name: 'x' });
      const two = made(a, { session_id, status: 'awaiting' });
      const three = made(a, { agent_name: 'x', status: 'awaiting' });
      const four = made(a, { agent_name: 'x' });
      const none = append(fresh({ agent_name: 'x', status: 'awaiting' }), ['1']);
      await store().commit([one, other, two, three, four, none]);
      const done = end(four.row, 'failed');
      await store().commit([done]);
      const [first, second, third, fourth] = [one, two, three, four].map(idOf);
      expect(await listed({ owner: a }, undefined, 10)).toEqual([fourth, third, second, first]);
      expect(await listed({ owner: a }, fourth, 2)).toEqual([third, second]);
      expect(await listed({ owner: a, agent_name: 'x' }, undefined, 10)).toEqual([fourth, third, first]);
      expect(await listed({ owner: a, status: 'awaiting' }, undefined, 10)).toEqual([third, second]);
      expect(await listed({ owner: a, status: 'failed' }, undefined, 10)).toEqual([fourth]);
      expect(await listed({ owner: a, status: 'created' }, undefined, 10)).toEqual([first]);
      expect(await listed({ owner: a, status: 'completed' }, undefined, 10)).toEqual([]);
      expect(await listed({ owner: a, agent_name: 'x', status: 'awaiting' }, undefined, 10)).toEqual([third]);
      expect(await listed({ owner: a, session_id: one.row.session_id }, undefined, 10)).toEqual([second, first]);
      expect(await listed({ owner: b, session_id: one.row.session_id }, undefined, 10)).toEqual([]);
      expect(await listed({ owner: b }, undefined, 10)).toEqual([idOf(other)]);
      expect(await listed({ owner: 'key:unknown' }, undefined, 10)).toEqual([]);
      await store().commit([one, other, two, three, none].map(({ row }) => end(row, 'cancelled')));
    });

    it('keeps the sessions of two owners with one id apart', async () => {
      const [a, b] = names();
      const [ofA, ofB] = [a, b].map((owner) => {
        const row = ownedRow(owner, { session_id: 'same' });
        return append(row, ['1'], { when: 'alone', ...messageOf(row, 'question') });
      });
      if (ofA === undefined || ofB === undefined) throw new Error('two owners have two writes');
      expect(await store().commit([ofA, ofB])).toEqual(['taken', 'taken']);
      expect((await store().session(`${a} same`))?.history).toEqual(ofA.history);
      expect(await store().sessionsOf(a, 10)).toEqual([`${a} same`]);
      expect(await store().sessionsOf(b, 10)).toEqual([`${b} same`]);
      await store().commit([end(ofA.row, 'completed')]);
      expect(await store().removeSession(`${a} same`)).toBe(true);
      await sweep();
      expect(await store().sessionsOf(a, 10)).toEqual([]);
      expect(await store().unfinished(`${b} same`, '', 10)).toEqual([ofB.row]);
      await store().commit([end(ofB.row, 'completed')]);
    });

    it('names some sessions of an owner, also those without runs, until they are removed', async () => {
      const [a, b] = names();
      const rows = Array.from({ length: 5 }, () => ownedRow(a));
      await store().commit([...rows, ownedRow(b)].flatMap((row) => wholeRun(row)));
      const sessions = rows.map(({ session_id }) => session_id).toSorted();
      expect((await store().sessionsOf(a, 10)).toSorted()).toEqual(sessions);
      const some = await store().sessionsOf(a, 3);
      expect(new Set(some).size).toBe(3);
      expect(sessions).toEqual(expect.arrayContaining(some));
      for (const { run_id } of rows.slice(0, 2)) await store().remove(run_id);
      await sweep({ runs: '2026-01-01T00:00:02.000Z' });
      expect(await listed({ owner: a }, undefined, 10)).toEqual([]);
      expect((await store().sessionsOf(a, 10)).toSorted()).toEqual(sessions);
      await store().removeSession(sessions[0] ?? '');
      expect((await store().sessionsOf(a, 10)).toSorted()).toEqual(sessions.slice(1));
      await sweep({ sessions: future });
      expect(await store().sessionsOf(a, 10)).toEqual([]);
      expect(await store().sessionsOf(b, 10)).toEqual([]);
      const again = append(ownedRow(a, { session_id: 'again' }), ['1']);
      await store().commit([again]);
      expect(await store().sessionsOf(a, 10)).toEqual([`${a} again`]);
      await store().commit([end(again.row, 'completed')]);
    });

    it('counts the figures of a run for its agent and for its owner', async () => {
      const [a, b] = names();
      const agent_name = `agent-${fresh().run_id}`;
      const rows = [ownedRow(a, { agent_name }), ownedRow(a, { agent_name }), ownedRow(b, { agent_name })];
      await store().commit([...rows, fresh({ agent_name })].flatMap((row) => wholeRun(row)));
      await store().commit(wholeRun(ownedRow(b, { agent_name }), 'failed'));
      const figures = async (owner?: string) => await store().figures([agent_name, 'never-ran'], owner);
      const sums = { agent_name, failed: 0 };
      expect(await figures()).toEqual([{ ...sums, completed: 4, failed: 1, tokens: 10, seconds: 5 }]);
      expect(await figures(a)).toEqual([{ ...sums, completed: 2, tokens: 4, seconds: 2 }]);
      expect(await figures(b)).toEqual([{ ...sums, completed: 1, failed: 1, tokens: 4, seconds: 2 }]);
      expect(await figures('key:unknown')).toEqual([]);
    });

    it('removes an owner with its keys and figures, and keeps those of others', async () => {
      const [a, b] = names();
      const agent_name = `agent-${fresh().run_id}`;
      const rows = [a, b, `${a}0`].map((owner) => ownedRow(owner, { agent_name }));
      const ownerless = fresh({ agent_name });
      for (const row of [...rows, ownerless]) {
        const [first, last] = wholeRun(row);
        if (first === undefined || last === undefined) throw new Error('a run has a beginning and an end');
        await store().commit([{ ...first, key: keyOf(row) }, last]);
      }
      const many = Array.from({ length: 250 }, (_, n) => {
        const row = ownedRow(a, { agent_name });
        return { ...append(row, ['1']), key: keyOf(row, `k${n}`) };
      });
      await store().commit(many);
      await store().commit(many.map(({ row }) => end(row, 'cancelled')));
      await store().removeOwner(a);
      expect(await store().figures([agent_name], a)).toEqual([]);
      for (const name of ['k', 'k0', 'k249']) expect(await store().key(`${a} runs`, name)).toBeUndefined();
      for (const row of [...rows.slice(1), ownerless]) {
        expect(await store().key(keyOf(row).scope, 'k')).toMatchObject({ run_id: row.run_id });
      }
      expect(await store().figures([agent_name], b)).toMatchObject([{ completed: 1 }]);
      expect(await store().figures([agent_name])).toMatchObject([{ completed: 4 }]);
      expect(await listed({ owner: a }, undefined, 1000)).toHaveLength(251);
      await store().removeOwner('key:unknown');
    });

    it('has nothing of an owner whose sessions were removed', async () => {
      const [a] = names();
      const rows = Array.from({ length: 3 }, () => ownedRow(a, { session_id: 'one' })).concat(ownedRow(a));
      for (const row of rows) {
        const [first, last] = wholeRun(row);
        if (first === undefined || last === undefined) throw new Error('a run has a beginning and an end');
        await store().commit([{ ...first, key: keyOf(row, row.run_id) }, last]);
      }
      for (const session_id of await store().sessionsOf(a, 10)) await store().removeSession(session_id);
      await store().removeOwner(a);
      await sweep();
      expect(await listed({ owner: a }, undefined, 10)).toEqual([]);
      expect(await listed({ owner: a, status: 'completed' }, undefined, 10)).toEqual([]);
      expect(await store().sessionsOf(a, 10)).toEqual([]);
      expect(await store().figures(['echo'], a)).toEqual([]);
      for (const { run_id, session_id } of rows) {
        expect(await store().run(run_id)).toBeUndefined();
        expect(await store().input(run_id)).toBeUndefined();
        expect(await store().events(run_id, 0, 10)).toEqual([]);
        expect(await store().journal(run_id)).toEqual([]);
        expect(await store().session(session_id)).toBeUndefined();
        expect(await store().resources([`question-of-${run_id}`])).toEqual([undefined]);
        expect(await store().key(`${a} runs`, run_id)).toBeUndefined();
      }
    });

    it('expires the keys of an owner like all others', async () => {
      const [a] = names();
      const row = ownedRow(a);
      await store().commit([{ ...append(row, ['1']), key: keyOf(row) }]);
      expect(await store().key(`${a} runs`, 'k')).toBeDefined();
      await sweep({ keys: '2026-01-03T00:00:00.000Z' });
      expect(await store().key(`${a} runs`, 'k')).toBeUndefined();
      await store().removeOwner(a);
      await store().commit([end({ ...row, last: 1 }, 'cancelled')]);
    });
  });
}
