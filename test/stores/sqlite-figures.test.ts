import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { AgentFigures } from '../../src/core/ports/run-lists.ts';
import type { Store } from '../../src/core/ports/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { openDatabase } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { newFolder } from '../support/folder.ts';
import { append, copyAfterKill, fresh } from './writes.ts';

const folder = newFolder(afterAll);
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

const agents = ['one', 'two'];
const owners = ['key:a', 'key:b'];

const byName = (figures: AgentFigures[]): AgentFigures[] =>
  figures.toSorted((a, b) => a.agent_name.localeCompare(b.agent_name));

const allFigures = (store: Store): Promise<AgentFigures[][]> =>
  Promise.all([undefined, ...owners].map(async (owner) => byName(await store.figures(agents, owner))));

/** Times of ends, in milliseconds: some are equal, and some come after later ones, as when a clock is set back. */
const time = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 10_000 }));
const ended = fc.record({
  agent_name: fc.constantFrom(...agents),
  owner: fc.constantFrom(null, ...owners),
  status: fc.constantFrom('completed' as const, 'failed' as const, 'cancelled' as const),
  tokens: fc.integer({ min: 0, max: 1_000 }),
  seconds: fc.integer({ min: 0, max: 1_000 }),
  time,
});
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('end' as const), runs: fc.array(ended, { maxLength: 40 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('kill', 'reopen', 'fail', 'remove', 'sweep', 'erase') }) },
);

/** Runs that end in their first write. */
const writesOf = (runs: readonly (typeof ended extends fc.Arbitrary<infer Run> ? Run : never)[]) =>
  runs.map(({ agent_name, owner, status, tokens, seconds, time }) => {
    const at = new Date(Date.UTC(2026, 0) + time).toISOString();
    const ended = status === 'cancelled' ? undefined : { tokens, seconds };
    return append(fresh({ agent_name, owner, status, finished_at: at }), ['"end"'], { ended });
  });

describe('the figures in a SQLite file', () => {
  it('count each run once, whenever the process is killed and whatever clock the runs had', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        let path = newPath();
        let store = new SqliteStore(path);
        const model = new MemoryStore();
        const ids: string[] = [];
        for (const one of steps) {
          if ('runs' in one) {
            const writes = writesOf(one.runs);
            ids.push(...writes.map(({ row }) => row.run_id));
            expect(await store.commit(writes)).toEqual(await model.commit(writes));
          } else if (one.do === 'fail') {
            // The transaction is rolled back and repeated without the write that cannot be stored.
            const [refused] = writesOf([
              { agent_name: 'one', owner: null, status: 'completed', tokens: 1, seconds: 1, time: 9_999 },
            ]);
            if (refused === undefined) throw new Error('one run makes one write');
            const outcomes = await store.commit([refused, { ...refused, history: [], lines: ['a\0'] }]);
            await model.commit([refused]);
            expect(outcomes[0]).toBe('taken');
          } else if (one.do === 'remove') {
            const [run_id = ''] = ids.splice(0, 1);
            await Promise.all([store.remove(run_id), model.remove(run_id)]);
          } else if (one.do === 'sweep') {
            const before = { keys: '', runs: '2026-01-01T00:00:00.002Z' };
            for (const each of [store, model]) while (await each.sweep(before));
          } else if (one.do === 'erase') {
            for (const each of [store, model]) await each.removeOwner('key:a');
          } else {
            const killed = one.do === 'kill' ? copyAfterKill(path, newPath()) : path;
            await store.close();
            path = killed;
            store = new SqliteStore(path);
          }
          expect(await allFigures(store)).toEqual(await allFigures(model));
        }
        await store.close();
      }),
      { numRuns: 60 },
    );
  });

  it('are written for many runs at once, so that the end of a run changes no page for them', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const other = openDatabase(path, { readOnly: true });
    const stored = other.prepare<[], { completed: number }>('SELECT completed FROM figures');
    const run = { agent_name: 'one', owner: null, status: 'completed' as const, tokens: 1, seconds: 1 };
    for (let time = 1; time <= 130; time += 1) {
      await store.commit(writesOf([{ ...run, time }]));
      expect(await store.figures(['one'])).toMatchObject([{ completed: time }]);
      expect(stored.all()).toEqual(time < 64 ? [] : [{ completed: time - (time % 64) }]);
    }
    other.close();
    await store.close();
  });

  it('are read at a start from a few runs, also where all were cancelled', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const run = { agent_name: 'one', owner: null, status: 'cancelled' as const, tokens: 0, seconds: 0 };
    await store.commit(writesOf(Array.from({ length: 64 }, (_, time) => ({ ...run, time }))));
    const other = openDatabase(path, { readOnly: true });
    expect(other.prepare('SELECT time FROM counted_until').all()).toEqual([{ time: '2026-01-01T00:00:00.063Z' }]);
    other.close();
    await store.close();
  });

  it('stay numbers where an agent reports none', async () => {
    const path = newPath();
    const store = new SqliteStore(path);
    const run = { agent_name: 'one', owner: null, status: 'completed' as const, seconds: 2, time: 1 };
    await store.commit(writesOf([Number.NaN, Number.POSITIVE_INFINITY, 5].map((tokens) => ({ ...run, tokens }))));
    const sums = [{ agent_name: 'one', completed: 3, failed: 0, tokens: 5, seconds: 6 }];
    expect(await store.figures(['one'])).toEqual(sums);
    const killed = new SqliteStore(copyAfterKill(path, newPath()));
    expect(await killed.figures(['one'])).toEqual(sums);
    await Promise.all([store.close(), killed.close()]);
  });
});
