import type { StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { finalStatuses } from '../../core/run-state.ts';
import { runStatuses } from '../../schema/statuses.ts';
import type { EndedRun } from '../figures.ts';
import { columnList } from '../run-columns.ts';
import { matchesStatus, newestStatuses, rangesOf } from '../status-times.ts';
import type { Database, Value } from './driver.ts';
import { isBrief, lasting } from './schema.ts';
import { notRemoved, sessionNumber } from './statements.ts';

/**
 * Lists of runs by the time of their status, and of the runs that ended. Each lasting status is a range of an index. Runs
 * that run are read from the index of those that are not final, all at once, and the runs of a session from all of them.
 */
export class StatusLists {
  readonly #ofAll: Lists;
  readonly #ofOwner: Lists;
  readonly #ofSession: ReturnType<typeof prepareSession>;
  readonly #ends: ReturnType<typeof prepareEnds>;
  readonly #agents: ReturnType<typeof prepareAgents>;

  constructor(db: Database) {
    this.#ofAll = {
      lasting: prepareList(db, `runs_by_status_time WHERE ${lasting} AND ${one}`),
      running: prepareList(db, `runs_unfinished WHERE finished_at IS NULL AND ${several}`),
    };
    this.#ofOwner = {
      lasting: prepareList(db, `runs_of_owner_by_status_time WHERE owner = ? AND ${lasting} AND ${one}`),
      running: prepareList(db, `runs_unfinished_of_owner WHERE owner = ? AND finished_at IS NULL AND ${several}`),
    };
    this.#ofSession = prepareSession(db);
    this.#ends = prepareEnds(db);
    this.#agents = prepareAgents(db);
  }

  page(filter: StatusFilter, after: StatusPosition | undefined, limit: number): RunRow[] {
    const { session_id } = filter;
    if (session_id !== undefined) return newestStatuses(this.#session(session_id, filter), after, limit);
    const { status_at, run_id } = after ?? { status_at: '~', run_id: '~' };
    const found = this.#ranges(filter).flatMap(({ list, range }) => list.page.all(...range, status_at, run_id, limit));
    return newestStatuses(found, after, limit);
  }

  count(filter: StatusFilter): number {
    const { session_id } = filter;
    if (session_id !== undefined) return this.#session(session_id, filter).length;
    return this.#ranges(filter).reduce((sum, { list, range }) => sum + (list.count.get(...range)?.count ?? 0), 0);
  }

  /** The first runs that ended, if before a time. Costs up to two looks at `limit` entries of each range. Runs that were made together are next to each other in the file. */
  endedBefore(time: string, limit: number): StatusPosition[] {
    return this.#ends.before.all('', limit, time);
  }

  /** The runs that ended after a time, with what they add to the figures of their agents. */
  endedAfter(time: string): CountedRun[] {
    return this.#ends.after.all(time);
  }

  /** The ranges of a filter, each with its list and the values that select it. */
  #ranges(filter: StatusFilter): { list: List; range: Value[] }[] {
    const { owner, since = '', statuses = runStatuses } = filter;
    const agent_names = filter.agent_names ?? this.#agents.all().map(({ name }) => name);
    const lists = owner === undefined ? this.#ofAll : this.#ofOwner;
    const values = (agents: string, of: string): Value[] => [
      ...(owner === undefined ? [] : [owner]),
      agents,
      of,
      since,
    ];
    const running = statuses.filter(isBrief);
    const lasting = statuses.filter((status) => !isBrief(status));
    const ranges = rangesOf(agent_names, lasting).map(([agent, status]) => ({
      list: lists.lasting,
      range: values(agent, status),
    }));
    if (running.length === 0) return ranges;
    return [...ranges, { list: lists.running, range: values(JSON.stringify(agent_names), JSON.stringify(running)) }];
  }

  #session(session_id: string, filter: StatusFilter): RunRow[] {
    return this.#ofSession.all(session_id).filter((row) => matchesStatus(row, filter));
  }
}

/** A run that has ended, and what it adds to the figures of its agent; null for nothing. */
type CountedRun = EndedRun & Pick<RunRow, 'status_at'> & Record<'tokens' | 'seconds', number | null>;

/** The agents and statuses of a range. */
const one = 'agent_name = ? AND status = ?';
const several = 'agent_name IN (SELECT value FROM json_each(?)) AND status IN (SELECT value FROM json_each(?))';

type List = ReturnType<typeof prepareList>;
type Lists = { readonly lasting: List; readonly running: List };

function prepareList(db: Database, list: string) {
  const range = `runs INDEXED BY ${list} AND status_at >= ? AND ${notRemoved}`;
  return {
    page: db.prepare<Value[], RunRow>(
      `SELECT ${columnList} FROM runs WHERE run_id IN
       (SELECT run_id FROM ${range} AND (status_at, run_id) < (?, ?) ORDER BY status_at DESC, run_id DESC LIMIT ?)`,
    ),
    count: db.prepare<Value[], { count: number }>(`SELECT count(*) AS count FROM ${range}`),
  };
}

const prepareSession = (db: Database) =>
  db.prepare<[session_id: string], RunRow>(
    `SELECT ${columnList} FROM runs INDEXED BY runs_of_session WHERE session = ${sessionNumber}`,
  );

/** The agents that have runs, with one descent of an index for each. */
const prepareAgents = (db: Database) =>
  db.prepare<
    [],
    { name: string }
  >(`WITH RECURSIVE agents (name) AS (${agentsIn('runs INDEXED BY runs_of_agent', 'true')})
    SELECT name FROM agents WHERE name IS NOT NULL`);

/** The names of the agents in an index that begins with them, and a null at the end. */
const agentsIn = (index: string, where: string): string => `
  SELECT min(agent_name) FROM ${index} WHERE ${where} UNION ALL
  SELECT (SELECT min(agent_name) FROM ${index} WHERE ${where} AND agent_name > name) FROM agents WHERE name IS NOT NULL`;

/**
 * The runs that ended, without an index by time of their own, which would be one more page that each run changes. They
 * are ranges of an index, one for each agent and final status. The agents are found with one descent for each.
 */
function prepareEnds(db: Database) {
  const index = 'runs INDEXED BY runs_by_status_time';
  const statuses = finalStatuses.map((status) => `('${status}')`);
  const ranges = `WITH RECURSIVE agents (name) AS (${agentsIn(index, lasting)}),
    ranges (agent, ending) AS (SELECT name, column1 FROM agents CROSS JOIN (VALUES ${statuses.join(', ')}) WHERE name IS NOT NULL)`;
  const inRange = `${lasting} AND agent_name = agent AND status = ending`;
  // Of each range, only what could be on the page: without that, each page would read all runs that ended since.
  const page = `${ranges}, page (id, ended_at) AS (
      SELECT run_id, status_at FROM ranges CROSS JOIN ${index}
      WHERE ${inRange} AND status_at >= ?1 AND status_at <= coalesce(
        (SELECT status_at FROM ${index} WHERE ${inRange} AND status_at >= ?1 ORDER BY status_at LIMIT 1 OFFSET ?2 - 1), '~')
      ORDER BY status_at, run_id LIMIT ?2
    )`;
  return {
    after: db.prepare<[time: string], CountedRun>(
      `${ranges} SELECT agent_name, owner, status, status_at, tokens, seconds FROM ranges CROSS JOIN ${index}
       WHERE ${inRange} AND status_at > ?`,
    ),
    before: db.prepare<[since: string, limit: number, before: string], StatusPosition>(
      `${page} SELECT id AS run_id, ended_at AS status_at FROM page WHERE ended_at < ?3`,
    ),
  };
}
