import type { RunRow, StatusFilter, StatusPosition } from '../../core/store.ts';
import { columnList } from '../run-columns.ts';
import { matchesStatus, newestStatuses, rangesOf } from '../status-times.ts';
import type { Database, Value } from './driver.ts';
import { notRemoved, sessionNumber } from './statements.ts';

/** Lists of runs by the time of their status. Each status is a range of an index; a session has few runs. */
export class StatusLists {
  readonly #ofAgent: ReturnType<typeof prepare>;
  readonly #ofOwner: ReturnType<typeof prepare>;
  readonly #ofSession: ReturnType<typeof prepareSession>;

  constructor(db: Database) {
    this.#ofAgent = prepare(db, 'runs_by_status_time WHERE agent_name = ?');
    this.#ofOwner = prepare(db, 'runs_of_owner_by_status_time WHERE owner = ? AND agent_name = ?');
    this.#ofSession = prepareSession(db);
  }

  page(filter: StatusFilter, after: StatusPosition | undefined, limit: number): RunRow[] {
    const { session_id } = filter;
    if (session_id !== undefined) return newestStatuses(this.#session(session_id, filter), after, limit);
    const { status_at, run_id } = after ?? { status_at: '~', run_id: '~' };
    const { page } = this.#listOf(filter);
    const found = valuesOf(filter).flatMap((range) => page.all(...range, status_at, run_id, limit));
    return newestStatuses(found, after, limit);
  }

  count(filter: StatusFilter): number {
    const { session_id } = filter;
    if (session_id !== undefined) return this.#session(session_id, filter).length;
    const { count } = this.#listOf(filter);
    return valuesOf(filter).reduce((sum, range) => sum + (count.get(...range)?.count ?? 0), 0);
  }

  #listOf({ owner }: StatusFilter): ReturnType<typeof prepare> {
    return owner === undefined ? this.#ofAgent : this.#ofOwner;
  }

  #session(session_id: string, filter: StatusFilter): RunRow[] {
    return this.#ofSession.all(session_id).filter((row) => matchesStatus(row, filter));
  }
}

function prepare(db: Database, list: string) {
  const range = `runs INDEXED BY ${list} AND status = ? AND status_at >= ? AND ${notRemoved}`;
  return {
    page: db.prepare<Value[], RunRow>(
      `SELECT ${columnList} FROM ${range} AND (status_at, run_id) < (?, ?)
       ORDER BY status_at DESC, run_id DESC LIMIT ?`,
    ),
    count: db.prepare<Value[], { count: number }>(`SELECT count(*) AS count FROM ${range}`),
  };
}

const prepareSession = (db: Database) =>
  db.prepare<[session_id: string], RunRow>(
    `SELECT ${columnList} FROM runs INDEXED BY runs_of_session WHERE session = ${sessionNumber}`,
  );

/** The values of each range: a list of an owner's runs begins with the owner. */
const valuesOf = (filter: StatusFilter): Value[][] =>
  rangesOf(filter).map((range) => [
    ...(filter.owner === undefined ? [] : [filter.owner]),
    ...range,
    filter.since ?? '',
  ]);
