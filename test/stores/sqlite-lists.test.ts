import { beforeAll, expect, it } from 'vitest';
import type { RunFilter, StatusFilter } from '../../src/core/ports/run-lists.ts';
import type { RunRow } from '../../src/core/ports/run-store.ts';
import { type Database, openDatabase, type Statement, type Value } from '../../src/stores/sqlite/driver.ts';
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts';
import { append, end, fresh } from './writes.ts';

/** The lists that the store has read: each statement with its values. */
const lists: { readonly sql: string; readonly values: readonly Value[] }[] = [];
const db = openDatabase(':memory:');

/** The same database, which notes the lists. */
const noting: Database = {
  isTransaction: false,
  exec: (sql) => db.exec(sql),
  close: () => db.close(),
  prepare: <Values extends readonly Value[], Row>(sql: string): Statement<Values, Row> => {
    const statement = db.prepare<Values, Row>(sql);
    const all = (...values: Values): Row[] => {
      lists.push({ sql, values });
      return statement.all(...values);
    };
    return {
      run: (...values) => statement.run(...values),
      get: (...values) => statement.get(...values),
      iterate: (...values) => statement.iterate(...values),
      all,
    };
  },
};

/** The index with which the plan of each noted list reads runs, and the columns by which it searches. */
const searches = (): string[] =>
  lists.flatMap(({ sql, values }) => {
    const plan = db.prepare<Value[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    return plan.flatMap(({ detail }) => /^(?:SEARCH|SCAN) runs\b.* INDEX (.*)$/.exec(detail)?.[1] ?? []);
  });

const entriesOf = (index: string): number =>
  db.prepare<[string], { entries: number }>('SELECT sum(ncell) AS entries FROM dbstat WHERE name = ?').get(index)
    ?.entries ?? 0;

const [agent_name, owner, session_id] = ['busy', 'key:alice', 'session'];
const agent_names = [agent_name];
const rowOf = (status: RunRow['status']): RunRow => fresh({ agent_name, owner, session_id, status });
const store = new SqliteStore(':memory:', 0, () => noting);

beforeAll(async () => {
  const finished = Array.from({ length: 2_000 }, () => append(rowOf('in-progress'), ['1']));
  await store.commit(finished);
  await store.commit(finished.map(({ row }) => end(row, 'completed')));
  await store.commit([append(rowOf('in-progress'), ['1']), append(rowOf('awaiting'), ['1'])]);
  return () => store.close();
});

it.each<['in-progress' | 'awaiting', RunFilter, search: string]>([
  ['in-progress', {}, 'runs_unfinished (run_id<?)'],
  ['in-progress', { agent_name }, 'runs_unfinished (run_id<?)'],
  ['in-progress', { owner }, 'runs_unfinished (run_id<?)'],
  ['in-progress', { session_id }, 'runs_of_session (session=? AND <expr>=? AND run_id<?)'],
  ['awaiting', {}, 'runs_by_status (status=? AND run_id<?)'],
  ['awaiting', { agent_name }, 'runs_of_agent_by_status (agent_name=? AND status=? AND run_id<?)'],
  ['awaiting', { owner }, 'runs_of_owner_by_status (owner=? AND status=? AND run_id<?)'],
  ['awaiting', { session_id }, 'runs_of_session_by_status (session=? AND status=? AND run_id<?)'],
])(
  'reads the list of %s runs among 2,000 finished ones from a small part of an index: %j',
  async (status, filter, search) => {
    lists.length = 0;
    expect(await store.runs({ ...filter, status }, undefined, 100)).toMatchObject([{ status }]);
    expect(searches()).toEqual([search]);
    // The index has only such runs, or the search selects them.
    if (!search.includes('<expr>=?')) expect(entriesOf(search.split(' ')[0] ?? '')).toBeLessThan(10);
  },
);

it.each<['in-progress' | 'awaiting', StatusFilter, search: RegExp]>([
  ['in-progress', { agent_names }, /^runs_unfinished$/],
  ['in-progress', { agent_names, owner }, /^runs_unfinished_of_owner \(owner=\?\)$/],
  ['awaiting', { agent_names }, /^runs_by_status_time \(agent_name=\? AND status=\? AND /],
  ['awaiting', { agent_names, owner }, /^runs_of_owner_by_status_time \(owner=\? AND agent_name=\? AND status=\? AND /],
])(
  'reads the list of %s runs by the time of their status from a small part of an index: %j',
  async (status, filter, search) => {
    lists.length = 0;
    expect(await store.runsByStatusTime({ ...filter, statuses: [status] }, undefined, 100)).toMatchObject([{ status }]);
    expect(searches()).toEqual([expect.stringMatching(search)]);
    if (status === 'in-progress') expect(entriesOf(search.source.slice(1).split(/\W/)[0] ?? '')).toBeLessThan(10);
  },
);
