import type { RunRow, StatusFilter, StatusPosition } from '../../core/store.ts';
import type { RunStatus } from '../../schema/run.ts';
import { columnList } from '../run-columns.ts';
import { matchesStatus, newestStatuses, rangesOf, runStatuses } from '../status-times.ts';
import type { Database, Value } from './driver.ts';
import { lasting } from './schema.ts';
import { notRemoved, sessionNumber } from './statements.ts';

/**
 * Lists of runs by the time of their status. Each lasting status is a range of an index. Runs that run are read from the
 * index of those that are not final, all at once, and the runs of a session from all of them.
 */
export class StatusLists {
  readonly #ofAll: Lists;
  readonly #ofOwner: Lists;
  readonly #ofSession: ReturnType<typeof prepareSession>;

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

  /** The ranges of a filter, each with its list and the values that select it. */
  #ranges(filter: StatusFilter): { list: List; range: Value[] }[] {
    const { agent_names, owner, since = '', statuses = runStatuses } = filter;
    const lists = owner === undefined ? this.#ofAll : this.#ofOwner;
    const values = (agents: string, of: string): Value[] => [
      ...(owner === undefined ? [] : [owner]),
      agents,
      of,
      since,
    ];
    const running = statuses.filter(isRunning);
    const ranges = rangesOf({ agent_names, statuses: statuses.filter((status) => !isRunning(status)) }).map(
      ([agent, status]) => ({ list: lists.lasting, range: values(agent, status) }),
    );
    if (running.length === 0) return ranges;
    return [...ranges, { list: lists.running, range: values(JSON.stringify(agent_names), JSON.stringify(running)) }];
  }

  #session(session_id: string, filter: StatusFilter): RunRow[] {
    return this.#ofSession.all(session_id).filter((row) => matchesStatus(row, filter));
  }
}

const isRunning = (status: RunStatus): boolean => status === 'created' || status === 'in-progress';

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
