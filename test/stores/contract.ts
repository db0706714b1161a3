import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunRow, Store, Write } from '../../src/core/store.ts';
import { conditionsContract } from './contract-conditions.ts';
import { costsContract } from './contract-costs.ts';
import { deliveriesContract } from './contract-deliveries.ts';
import { extremesContract } from './contract-extremes.ts';
import { outcomesContract } from './contract-outcomes.ts';
import { ownersContract } from './contract-owners.ts';
import { removalContract } from './contract-removal.ts';
import { sessionsContract } from './contract-sessions.ts';
import { sharingContract } from './contract-sharing.ts';
import { statusTimesContract } from './contract-status-times.ts';
import { targetsContract } from './contract-targets.ts';
import { urlFailuresContract } from './contract-url-failures.ts';
import { deliveriesModel } from './deliveries-model.ts';
import { append, end, fresh, input, numbered } from './writes.ts';

/**
 * The contract of every store. `open` opens the same stored data each time; a shared store may be open twice. Without
 * `costs`, it leaves out what needs much data.
 */
export function storeContract(name: string, open: () => Promise<Store>, { shared = true, costs = true } = {}): void {
  describe(`a store: ${name}`, () => {
    let store: Store;

    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    it('knows no run that was not written', async () => {
      expect(await store.run('unknown')).toBeUndefined();
      expect(await store.input('unknown')).toBeUndefined();
      expect(await store.events('unknown', 0, 10)).toEqual([]);
    });

    it('reads a run, its input and its events as they were written', async () => {
      const write = append(fresh(), ['{"a":1}', '{"b":"ü\\n"}']);
      expect(await store.commit([write])).toEqual(['taken']);
      expect(await store.run(write.row.run_id)).toEqual(write.row);
      expect(await store.input(write.row.run_id)).toEqual(input);
      expect(numbered(await store.events(write.row.run_id, 0, 10))).toEqual([
        [1, '{"a":1}'],
        [2, '{"b":"ü\\n"}'],
      ]);
    });

    it('continues a log where it ended, and replays it from any event', async () => {
      const first = append(fresh(), ['1', '2', '3']);
      const second = append(first.row, ['4', '5']);
      const third = append(second.row, ['6']);
      await store.commit([first]);
      await store.commit([second, third]);
      for (let after = 0; after <= 6; after += 1) {
        const found = numbered(await store.events(first.row.run_id, after, 100)).filter(([seq]) => seq > after);
        expect(found.map(([, line]) => Number(line))).toEqual([1, 2, 3, 4, 5, 6].slice(after));
      }
    });

    it('counts the events of a write: writes share a row while only the log grows', async () => {
      const { row, ...first } = append(fresh(), ['1']);
      const grown = { row, grown: true };
      const writes = [
        { row, ...first },
        { ...grown, expect: 1, lines: ['2'] },
        { ...grown, expect: 2, lines: ['3', '4'], journal: ['{}'] },
        { ...grown, expect: 4, lines: ['5'] },
      ];
      expect(await store.commit(writes)).toEqual(['taken', 'taken', 'taken', 'taken']);
      expect(await store.run(row.run_id)).toEqual({ ...row, last: 5 });
      const asks: Write = { row: { ...row, status: 'awaiting', snapshot: 6 }, expect: 5, lines: ['6'] };
      expect(await store.commit([asks, { ...asks, ...grown, expect: 5 }])).toEqual(['taken', 'fenced']);
      expect(await store.run(row.run_id)).toEqual({ ...asks.row, last: 6 });
      expect(numbered(await store.events(row.run_id, 0, 10)).map(([id]) => id)).toEqual([1, 2, 3, 4, 5, 6]);
    });

    it('reads a long log page by page', async () => {
      let row = fresh();
      for (let batch = 0; batch < 50; batch += 1) {
        const write = append(row, [`${batch}a`, `${batch}b`]);
        await store.commit([write]);
        row = write.row;
      }
      const seen: number[] = [];
      for (let after = 0; after < 100; ) {
        const page = numbered(await store.events(row.run_id, after, 7));
        expect(page.length).toBeGreaterThan(0);
        expect(page.length).toBeLessThan(20);
        for (const [seq] of page) if (seq > after) seen.push(seq);
        after = seen.at(-1) ?? 0;
      }
      expect(seen).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    });

    it('refuses a write that is not at the end of the log, and changes nothing', async () => {
      const first = append(fresh(), ['1', '2']);
      await store.commit([first]);
      const stale = append({ ...first.row, last: 1 }, ['other'], {
        resources: [
          {
            resource_id: `r-${first.row.run_id}`,
            session_id: 's',
            run_id: null,
            content_type: 'text/plain',
            body: 'x',
          },
        ],
        history: ['/resources/x'],
      });
      const ahead = append({ ...first.row, last: 5 }, ['other']);
      expect(await store.commit([stale])).toEqual(['fenced']);
      expect(await store.commit([ahead])).toEqual(['fenced']);
      expect(await store.run(first.row.run_id)).toEqual(first.row);
      expect(numbered(await store.events(first.row.run_id, 0, 10))).toHaveLength(2);
      expect((await store.resources([`r-${first.row.run_id}`]))[0]).toBeUndefined();
    });

    it('refuses a second run with the id of the first', async () => {
      const write = append(fresh(), ['1']);
      expect(await store.commit([write])).toEqual(['taken']);
      expect(await store.commit([write])).toEqual(['fenced']);
    });

    it('refuses a writer of another epoch', async () => {
      const first = append(fresh({ epoch: 2 }), ['1']);
      await store.commit([first]);
      expect(await store.commit([append({ ...first.row, epoch: 1 }, ['2'])])).toEqual(['fenced']);
      expect(await store.commit([append(first.row, ['2'])])).toEqual(['taken']);
    });

    it('accepts no write after a final status', async () => {
      const first = append(fresh(), ['1']);
      const end = append({ ...first.row, status: 'completed', finished_at: '2026-01-01T00:00:01.000Z' }, ['2']);
      const late = append({ ...end.row, status: 'cancelled' }, ['3']);
      expect(await store.commit([first, end, late])).toEqual(['taken', 'taken', 'fenced']);
      expect((await store.run(first.row.run_id))?.status).toBe('completed');
    });

    it('applies the other writes of a commit in which one is refused', async () => {
      const good = append(fresh(), ['1']);
      const bad = append({ ...fresh(), last: 9 }, ['1']);
      const alsoGood = append(fresh(), ['1']);
      expect(await store.commit([good, bad, alsoGood])).toEqual(['taken', 'fenced', 'taken']);
      expect(await store.run(alsoGood.row.run_id)).toBeDefined();
    });

    it('applies a change of status without an event', async () => {
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      expect(await store.commit([{ row: { ...first.row, status: 'cancelling' }, expect: 1, lines: [] }])).toEqual([
        'taken',
      ]);
      expect(await store.run(first.row.run_id)).toEqual({ ...first.row, status: 'cancelling' });
    });

    it('lists unfinished runs, oldest first, from any run on', async () => {
      const before = fresh();
      const open = append(fresh(), ['1']);
      const done = append(fresh(), ['1']);
      const end = append({ ...done.row, status: 'failed', finished_at: '2026-01-01T00:00:01.000Z' }, ['2']);
      const later = append(fresh(), ['1']);
      await store.commit([later, open, done, end]);
      expect(await store.unfinished(undefined, before.run_id, 1000)).toEqual([open.row, later.row]);
      expect(await store.unfinished(undefined, before.run_id, 1)).toEqual([open.row]);
      expect(await store.unfinished(undefined, open.row.run_id, 1000)).toEqual([later.row]);
    });

    it('adds to a session’s history in the order of the commits, each URL once', async () => {
      const session_id = `shared-${Date.now()}`;
      const writes = [['/resources/1', 'https://a/2'], ['https://a/2', '/resources/3'], []].map((history) =>
        append(fresh({ session_id }), ['1'], { history }),
      );
      for (const write of writes) await store.commit([write]);
      expect(await store.session(session_id)).toEqual({
        session_id,
        history: ['/resources/1', 'https://a/2', '/resources/3'],
        state: null,
      });
      await store.commit([append(fresh({ session_id }), ['1'], { state: '/resources/9' })]);
      expect((await store.session(session_id))?.state).toBe('/resources/9');
      expect(await store.session('unknown')).toBeUndefined();
    });

    it('loses no history when many runs of one session end at the same time', async () => {
      const session_id = `busy-${Date.now()}`;
      await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          store.commit([append(fresh({ session_id }), ['1'], { history: [`/resources/${n}`] })]),
        ),
      );
      expect((await store.session(session_id))?.history).toHaveLength(50);
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
      await store.commit([append(row, ['1'], { resources: [resource] })]);
      expect((await store.resources([resource.resource_id]))[0]).toEqual(resource);
      const { resource_id } = resource;
      expect(await store.resources(['unknown', resource_id, 'unknown too', resource_id])).toEqual([
        undefined,
        resource,
        undefined,
        resource,
      ]);
      expect(await store.resources([])).toEqual([]);
    });

    it('sums the figures of an agent’s ended runs, without cancelled ones', async () => {
      const agent_name = `agent-${Date.now()}`;
      const ended = (status: RunRow['status'], tokens: number): Write[] => {
        const first = append(fresh({ agent_name }), ['1']);
        return [
          first,
          end(first.row, status, status === 'cancelled' ? {} : { ended: { tokens, seconds: tokens / 10 } }),
        ];
      };
      await store.commit([
        ...ended('completed', 10),
        ...ended('completed', 20),
        ...ended('failed', 3),
        ...ended('cancelled', 99),
      ]);
      expect(await store.figures([agent_name, 'never-ran'])).toEqual([
        { agent_name, completed: 2, failed: 1, tokens: 33, seconds: 3.3 },
      ]);
    });

    it('hands a run over to a new epoch, and then refuses the old one', async () => {
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      const taken = { ...first.row, epoch: 2, attempts: 1 };
      expect(await store.commit([{ row: taken, from: 1, expect: 1, lines: [] }])).toEqual(['taken']);
      expect(await store.run(first.row.run_id)).toEqual(taken);
      expect(await store.commit([append(first.row, ['old'])])).toEqual(['fenced']);
      expect(await store.commit([{ row: { ...taken, epoch: 3 }, from: 1, expect: 1, lines: [] }])).toEqual(['fenced']);
      expect(await store.commit([append(taken, ['new'])])).toEqual(['taken']);
    });

    it('keeps a journal in the order in which it was written', async () => {
      const first = append(fresh(), ['1'], { journal: ['{"a":1}'] });
      const second = append(first.row, [], { journal: ['{"b":2}', '{"c":3}'] });
      await store.commit([first]);
      await store.commit([second, append(second.row, ['2'])]);
      expect(await store.journal(first.row.run_id)).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
      expect(await store.journal('unknown')).toEqual([]);
    });

    it('lists runs newest first, by agent, session and status, from any run on', async () => {
      const agent_name = `lister-${Date.now()}`;
      const rows = Array.from({ length: 6 }, (_, n) =>
        append(fresh({ agent_name, session_id: `s${n % 2}-${agent_name}` }), ['1']),
      );
      await store.commit(rows);
      const ids = rows.map(({ row }) => row.run_id).reverse();
      const listed = async (...args: Parameters<Store['runs']>) =>
        (await store.runs(...args)).map(({ run_id }) => run_id);
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
      await store.commit(made);
      const park = { parked: 'why', rests_at: '2026-01-01T00:00:00.000Z' };
      const parked = made.slice(1, 4).map(({ row }) => append({ ...row, ...park, epoch: 2 }, [], { from: 1 }));
      expect(await store.commit(parked)).toEqual(['taken', 'taken', 'taken']);
      const [oldest, middle, newest] = parked.map(({ row }) => row);
      if (oldest === undefined || middle === undefined || newest === undefined) throw new Error('three are parked');
      const listed = (more: object, before?: string, limit = 10) =>
        store.runs({ agent_name, parked: true, ...more }, before, limit);
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
      expect((await store.unfinished(`${owner} s`, '', 10)).map((row) => row.parked)).toEqual([
        null,
        'why',
        'why',
        'why',
        null,
      ]);
      const tried = append({ ...middle, parked: null, rests_at: null, epoch: 3 }, [], { from: 2 });
      expect(await store.commit([tried, end({ ...oldest, parked: null }, 'cancelled')])).toEqual(['taken', 'taken']);
      expect(await listed({})).toEqual([newest]);
      expect(await store.run(middle.run_id)).toEqual(tried.row);
    });

    it('lists the runs of a session newest first, also where final ones and others alternate', async () => {
      const session_id = `mixed-${Date.now()}`;
      const writes = Array.from({ length: 9 }, () => append(fresh({ session_id }), ['1']));
      await store.commit(writes);
      const ended = [1, 2, 5, 8];
      await store.commit(
        writes.flatMap(({ row }, n) => (ended.includes(n) ? [end(row, n === 5 ? 'failed' : 'completed')] : [])),
      );
      const ids = writes.map(({ row }) => row.run_id).reverse();
      const listed = async (...args: Parameters<Store['runs']>) =>
        (await store.runs(...args)).map(({ run_id }) => run_id);
      expect(await listed({ session_id }, undefined, 10)).toEqual(ids);
      for (const at of [2, 4, 6]) expect(await listed({ session_id }, ids[at - 1], 2)).toEqual(ids.slice(at, at + 2));
      expect(await listed({ session_id, status: 'completed' }, undefined, 10)).toEqual([ids[0], ids[6], ids[7]]);
      expect(await listed({ session_id, status: 'failed' }, undefined, 10)).toEqual([ids[3]]);
      expect(await listed({ session_id, status: 'created' }, ids[1], 2)).toEqual([ids[2], ids[4]]);
      expect(await store.count(session_id)).toBe(5);
    });

    it('finds the runs that are due, and the unfinished runs of a session', async () => {
      const session_id = `due-${Date.now()}`;
      const soon = append(fresh({ session_id, due: '2026-01-01T00:00:05.000Z' }), ['1']);
      const never = append(fresh({ session_id }), ['1']);
      const done = append(fresh({ session_id, status: 'failed', finished_at: '2026-01-01T00:00:01.000Z' }), ['1']);
      await store.commit([soon, never, done]);
      expect(await store.due('2026-01-01T00:00:04.000Z', 10)).toEqual([]);
      expect(await store.due('2026-01-01T00:00:05.000Z', 10)).toEqual([soon.row]);
      expect(await store.unfinished(session_id, '', 10)).toEqual([soon.row, never.row]);
      expect(await store.unfinished(session_id, soon.row.run_id, 10)).toEqual([never.row]);
      expect(await store.count(session_id)).toBe(2);
      await store.commit([end({ ...soon.row, due: null }, 'cancelled')]);
      expect(await store.count(session_id)).toBe(1);
      expect(await store.due('2026-01-01T00:00:05.000Z', 10)).toEqual([]);
      expect(await store.count('unknown')).toBe(0);
    });

    it('counts the runs that are not final, by status, with the oldest one', async () => {
      const session_id = `open-${Date.now()}`;
      const counted = async (): Promise<number[]> => {
        const open = await store.openRuns();
        return ['created', 'awaiting', 'failed'].map((one) => open.find(({ status }) => status === one)?.count ?? 0);
      };
      const [created = 0, awaiting = 0] = await counted();
      const first = append(fresh({ session_id, status: 'awaiting' }), ['1']);
      const second = append(fresh({ session_id, status: 'awaiting' }), ['1']);
      const queued = append(fresh({ session_id, status: 'created' }), ['1']);
      await store.commit([first, second, queued]);
      expect(await counted()).toEqual([created + 1, awaiting + 2, 0]);
      expect(await store.openRuns(session_id)).toEqual([]);
      const owned = append(fresh({ owner: session_id, status: 'awaiting' }), ['1']);
      await store.commit([owned]);
      const { run_id } = owned.row;
      expect(await store.openRuns(session_id)).toEqual([{ status: 'awaiting', count: 1, oldest: run_id }]);
      await store.commit([end(owned.row, 'failed')]);
      expect(await store.openRuns(session_id)).toEqual([]);
      const oldest = (await store.openRuns()).find(({ status }) => status === 'awaiting')?.oldest ?? '';
      expect([first, second].every(({ row }) => oldest <= row.run_id)).toBe(true);
      expect((await store.run(oldest))?.status).toBe('awaiting');
      for (const { row } of [first, second, queued]) await store.commit([end(row, 'failed')]);
      expect(await counted()).toEqual([created, awaiting, 0]);
    });

    it('accepts a key once, until it is no longer fresh', async () => {
      const key = (hash: string, created_at: string, fresh_from: string, run_id: string) => ({
        scope: 'runs',
        key: `k-${name}`,
        hash,
        run_id,
        after: 0,
        created_at,
        fresh: fresh_from,
      });
      const a = append(fresh(), ['1']);
      const b = append(fresh(), ['1']);
      const keyA = key('a', '2026-01-02', '2026-01-01', a.row.run_id);
      expect(
        await store.commit([
          { ...a, key: keyA },
          { ...b, key: key('b', '2026-01-02', '2026-01-01', b.row.run_id) },
        ]),
      ).toEqual(['taken', 'key_used']);
      expect(await store.run(b.row.run_id)).toBeUndefined();
      expect(await store.key('runs', `k-${name}`)).toMatchObject({ hash: 'a', run_id: a.row.run_id });
      expect(await store.commit([{ ...b, key: key('b', '2026-01-04', '2026-01-03', b.row.run_id) }])).toEqual([
        'taken',
      ]);
      expect(await store.key('runs', `k-${name}`)).toMatchObject({ hash: 'b', run_id: b.row.run_id });
      while (await store.sweep({ keys: '2026-01-05' })) await Promise.resolve();
      expect(await store.key('runs', `k-${name}`)).toBeUndefined();
    });

    it('leaves the key of a refused write free', async () => {
      const first = append(fresh(), ['1']);
      await store.commit([first]);
      const { run_id } = first.row;
      const key = {
        scope: run_id,
        key: 'k',
        hash: 'a',
        run_id,
        after: 1,
        created_at: '2026-01-02',
        fresh: '2026-01-01',
      };
      expect(await store.commit([{ ...append({ ...first.row, last: 5 }, ['2']), key }])).toEqual(['fenced']);
      expect(await store.key(run_id, 'k')).toBeUndefined();
      expect(await store.commit([{ ...append(first.row, ['2']), key }])).toEqual(['taken']);
      expect(await store.key(run_id, 'k')).toMatchObject({ hash: 'a', after: 1 });
    });

    conditionsContract(() => store);
    extremesContract(() => store);
    removalContract(() => store);
    ownersContract(() => store);
    deliveriesContract(() => store);
    urlFailuresContract(() => store);
    deliveriesModel(() => store);
    outcomesContract(() => store);
    sessionsContract(() => store);
    statusTimesContract(() => store);
    targetsContract(() => store);
    if (costs) costsContract(() => store);
    if (shared) sharingContract(() => store, open);
  });
}
