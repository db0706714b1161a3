import type { AgentFigures, OpenRuns, RunFilter } from '../../core/ports/run-lists.ts';
import type { Key, RunRow } from '../../core/ports/run-store.ts';
import type { Resource } from '../../core/ports/session-store.ts';
import type { RunStatus } from '../../schema/run.ts';
import { columnList, mutableColumns, runColumns } from '../run-columns.ts';
import type { Database, Statement, Value } from './driver.ts';
import { final, isBrief, open, rare } from './schema.ts';

export type Statements = ReturnType<typeof prepareWrites> &
  ReturnType<typeof prepareReads> &
  ReturnType<typeof prepareRemoval> & { runs: ReturnType<typeof prepareRunLists> };

/** All statements, compiled once when the file is opened. Positional parameters take half the time of named ones. */
export function prepare(db: Database, token: string): Statements {
  return { ...prepareWrites(db, token), ...prepareReads(db), ...prepareRemoval(db), runs: prepareRunLists(db) };
}

/**
 * A statement whose result does not matter. `run` would make an object for the count of changes and the last rowid, which
 * takes a third of the time of a short statement. `get` makes none where there are no rows.
 */
type Command<Parameters extends readonly Value[]> = (...parameters: Parameters) => void;

/** The number of a session, by its id. */
export const sessionNumber = '(SELECT session FROM sessions WHERE session_id = ?)';
export const notRemoved = 'session NOT IN (SELECT session FROM removed_sessions)';

/** The number of a run, and that of its session. */
export interface RunNumbers {
  readonly number: number;
  readonly session: number;
}

/** A run that is not final, as its row is. */
export interface StoredRun extends RunNumbers {
  readonly run_id: string;
  readonly epoch: number;
  readonly targets: string | null;
  readonly last: number;
}

function prepareWrites(db: Database, token: string) {
  const command = <Parameters extends readonly Value[]>(sql: string): Command<Parameters> => {
    const statement = db.prepare<Parameters>(sql);
    return statement.get.bind(statement);
  };
  return {
    begin: command<[]>('BEGIN IMMEDIATE'),
    commit: command<[]>('COMMIT'),
    rollback: command<[]>('ROLLBACK'),
    // The token is part of the text: each transaction asks, and a row or a parameter would double the time of the answer.
    otherOwner: db.prepare<[]>(`SELECT 1 FROM owner WHERE token <> '${token}'`),
    setOwner: command<[string]>('INSERT OR REPLACE INTO owner (one, token) VALUES (1, ?)'),
    insertRun: command<Value[]>(
      `INSERT INTO runs (${columnList}, tokens, seconds, input, number, session)
       VALUES (${runColumns.map(() => '?').join(', ')}, ?, ?, ?, ?, ?)`,
    ),
    insertSession: command<[session_id: string, session: number, owner: string | null, used_at: string]>(
      'INSERT INTO sessions (session_id, session, owner, used_at, idle) VALUES (?, ?, ?, ?, 0)',
    ),
    reserveNumbers: command<[number]>('INSERT OR REPLACE INTO numbers (one, reserved) VALUES (1, ?)'),
    useSession: command<[session_id: string]>('UPDATE sessions SET idle = 0 WHERE session_id = ?'),
    // Needs no fence, because the commit log was asked.
    updateRun: command<Value[]>(
      `UPDATE runs SET ${mutableColumns.map((column) => `${column} = ?`).join(', ')}, tokens = ?, seconds = ?
       WHERE run_id = ?`,
    ),
    setTargets: db.prepare<Value[]>('UPDATE runs SET targets = ? WHERE run_id = ? AND targets IS ?'),
    setReaders: db.prepare<Value[]>('UPDATE runs SET readers = ? WHERE run_id = ? AND readers IS ?'),
    insertCommit: command<[number, string]>('INSERT INTO commits (position, body) VALUES (?, ?)'),
    trimCommits: command<[number]>('DELETE FROM commits WHERE position < ?'),
    // Changes no indexed column.
    setLast: command<[number, string]>('UPDATE runs SET last = ? WHERE run_id = ?'),
    insertEvents: command<[run: number, first: number, last: number, body: string]>(
      'INSERT INTO events (run, first, last, body) VALUES (?, ?, ?, ?)',
    ),
    insertJournal: command<[run: number, body: string]>('INSERT INTO journal (run, body) VALUES (?, ?)'),
    insertKey: command<[string, string, string, string, number, string]>(
      'INSERT OR REPLACE INTO keys (scope, key, hash, run_id, after, created_at) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    insertUrl: command<[position: number, session: number, url: string]>(
      'INSERT INTO history (position, session, url) VALUES (?, ?, ?)',
    ),
    setState: command<[state: string, session_id: string, session: number]>(
      'UPDATE sessions SET state = ? WHERE session_id = ? AND session = ?',
    ),
    insertResource: command<Value[]>(
      `INSERT INTO resources (position, resource_id, session_id, run_id, content_type, body, session, listed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    deleteUnlistedResource: command<[resource_id: string, run_id: string, session: number]>(
      'DELETE FROM resources WHERE resource_id = ? AND run_id = ? AND session = ? AND listed = 0',
    ),
    addFigures: command<[string, string, number, number, number, number]>(
      `INSERT INTO figures (owner, agent_name, completed, failed, tokens, seconds) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (owner, agent_name) DO UPDATE SET completed = completed + excluded.completed,
       failed = failed + excluded.failed, tokens = min(tokens + excluded.tokens, ${Number.MAX_VALUE}),
       seconds = min(seconds + excluded.seconds, ${Number.MAX_VALUE})`,
    ),
    setCountedUntil: command<[time: string]>('INSERT OR REPLACE INTO counted_until (one, time) VALUES (1, ?)'),
  };
}

function prepareReads(db: Database) {
  const unfinished = (where: string): string => `FROM runs INDEXED BY ${where} AND finished_at IS NULL`;
  const ofSession = `FROM runs INDEXED BY runs_of_session WHERE session = ${sessionNumber} AND ${open}`;
  const other = (comparison: string) =>
    db.prepare<[session_id: string, run_id: string]>(`SELECT 1 ${ofSession} AND run_id ${comparison} ? LIMIT 1`);
  return {
    commits: db.prepare<[], { position: number; body: string }>('SELECT position, body FROM commits ORDER BY position'),
    run: db.prepare<[string], RunRow>(`SELECT ${columnList} FROM runs WHERE run_id = ? AND ${notRemoved}`),
    unfinishedRun: db.prepare<[string], StoredRun>(
      'SELECT run_id, epoch, targets, last, number, session FROM runs WHERE run_id = ? AND finished_at IS NULL',
    ),
    input: db.prepare<[string], { input: string }>('SELECT input FROM runs WHERE run_id = ?'),
    events: db.prepare<[run_id: string, after: number], { first: number; body: string }>(
      'SELECT first, body FROM events WHERE run = (SELECT number FROM runs WHERE run_id = ?) AND last > ? ORDER BY last',
    ),
    journal: db.prepare<[string], { body: string }>(
      'SELECT body FROM journal WHERE run = (SELECT number FROM runs WHERE run_id = ?) ORDER BY position',
    ),
    unfinished: db.prepare<[after: string, limit: number], RunRow>(
      `SELECT ${columnList} ${unfinished('runs_unfinished WHERE run_id > ?')} ORDER BY run_id LIMIT ?`,
    ),
    unfinishedOfSession: db.prepare<[session_id: string, after: string, limit: number], RunRow>(
      `SELECT ${columnList} ${ofSession} AND run_id > ? ORDER BY run_id LIMIT ?`,
    ),
    count: db.prepare<[session_id: string], { count: number }>(`SELECT count(*) AS count ${ofSession}`),
    openRuns: db.prepare<[], OpenRuns>(
      `SELECT status, count(*) AS count, min(run_id) AS oldest ${unfinished('runs_unfinished WHERE true')} GROUP BY status`,
    ),
    openRunsOf: db.prepare<[owner: string], OpenRuns>(
      `SELECT status, count(*) AS count, min(run_id) AS oldest ${unfinished('runs_unfinished_of_owner WHERE owner = ?')}
       GROUP BY status`,
    ),
    otherUnfinished: { alone: other('<>'), first: other('<'), last: other('>') },
    due: db.prepare<[string, number], RunRow>(`SELECT ${columnList} FROM runs WHERE due <= ? ORDER BY due LIMIT ?`),
    key: db.prepare<[string, string], Key>(
      'SELECT scope, key, hash, run_id, after, created_at FROM keys WHERE scope = ? AND key = ?',
    ),
    session: db.prepare<[string], { session: number; state: string | null; idle: number }>(
      'SELECT session, state, idle FROM sessions WHERE session_id = ?',
    ),
    newestSession: db.prepare<[], { session_id: string | null }>('SELECT max(session_id) AS session_id FROM sessions'),
    reservedNumbers: db.prepare<[], { reserved: number }>('SELECT reserved FROM numbers'),
    newestPosition: db.prepare<[], { position: number }>(
      `SELECT max(coalesce((SELECT max(position) FROM resources), 0),
                  coalesce((SELECT max(position) FROM history), 0)) AS position`,
    ),
    state: db.prepare<[session_id: string, session: number], { state: string | null }>(
      'SELECT state FROM sessions WHERE session_id = ? AND session = ?',
    ),
    history: db.prepare<[number], { url: string }>(
      `SELECT position, '/resources/' || resource_id AS url
       FROM resources INDEXED BY resources_listed WHERE session = ?1 AND listed = 1
       UNION ALL SELECT position, url FROM history WHERE session = ?1 ORDER BY position`,
    ),
    listedUrl: db.prepare<[number, string]>('SELECT 1 FROM history WHERE session = ? AND url = ?'),
    listedMessage: db.prepare<[string, number]>(
      'SELECT 1 FROM resources WHERE resource_id = ? AND session = ? AND listed = 1',
    ),
    resource: db.prepare<[string], Resource>(
      `SELECT resource_id, session_id, run_id, content_type, body FROM resources WHERE resource_id = ? AND ${notRemoved}`,
    ),
    sessionsOf: db.prepare<[owner: string, limit: number], { session_id: string }>(
      'SELECT session_id FROM sessions WHERE owner = ? LIMIT ?',
    ),
    figures: db.prepare<[owner: string, agent_names: string], AgentFigures>(
      `SELECT agent_name, completed, failed, tokens, seconds FROM figures
       WHERE owner = ? AND agent_name IN (SELECT value FROM json_each(?))`,
    ),
    countedUntil: db.prepare<[], { time: string }>('SELECT time FROM counted_until'),
  };
}

function prepareRemoval(db: Database) {
  const byId = <Row = unknown>(sql: string) => db.prepare<[id: string], Row>(sql);
  const ofSession = (sql: string) => db.prepare<[session: number]>(sql);
  const ofRun = (sql: string) => db.prepare<[run: number]>(sql);
  const resourcesOfRun = (listed: number) =>
    db.prepare<[session: number, run_id: string]>(
      `DELETE FROM resources WHERE session = ? AND run_id = ? AND listed = ${listed}`,
    );
  /** Deletes some rows of a table by their positions. */
  const some = <Parameters extends readonly Value[]>(table: string, where: string) =>
    db.prepare<[...Parameters, limit: number]>(
      `DELETE FROM ${table} WHERE position IN (SELECT position FROM ${table} WHERE ${where} LIMIT ?)`,
    );
  type Run = { run_id: string; finished_at: string };
  return {
    endOfRun: db.prepare<[string], { session: number; finished_at: string | null }>(
      'SELECT session, finished_at FROM runs WHERE run_id = ?',
    ),
    insertRemoved: ofRun('INSERT INTO removed (run) VALUES (?)'),
    deleteRun: byId<{ session_id: string } & RunNumbers>(
      'DELETE FROM runs WHERE run_id = ? RETURNING session_id, number, session',
    ),
    deleteListed: resourcesOfRun(1),
    deleteUnlisted: resourcesOfRun(0),
    deleteState: db.prepare<[string, number, string]>(
      'DELETE FROM resources WHERE resource_id = ? AND session = ? AND session_id = ? AND run_id IS NULL',
    ),
    deleteSession: byId<{ session: number }>('DELETE FROM sessions WHERE session_id = ? RETURNING session'),
    /** After one of its runs was deleted. */
    touchSession: db.prepare<[finished_at: string, session_id: string, session: number]>(
      `UPDATE sessions SET used_at = max(used_at, ?),
       idle = NOT EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.session) WHERE session_id = ? AND session = ?`,
    ),
    insertRemovedSession: ofSession('INSERT INTO removed_sessions (session) VALUES (?)'),
    removedRun: db.prepare<[], { run: number }>('SELECT run FROM removed LIMIT 1'),
    clearEvents: some<[run: number]>('events', 'run = ?'),
    clearJournal: some<[run: number]>('journal', 'run = ?'),
    clearRemoved: ofRun('DELETE FROM removed WHERE run = ?'),
    removedSession: db.prepare<[], { session: number }>('SELECT session FROM removed_sessions LIMIT 1'),
    clearRemovedSession: ofSession('DELETE FROM removed_sessions WHERE session = ?'),
    runOfSession: db.prepare<[number], Run>('SELECT run_id, finished_at FROM runs WHERE session = ? LIMIT 1'),
    clearListed: some<[session: number]>('resources', 'session = ? AND listed = 1'),
    clearUnlisted: some<[session: number]>('resources', 'session = ? AND listed = 0'),
    clearUrls: some<[session: number]>('history', 'session = ?'),
    idleSession: db.prepare<[string], { session_id: string }>(
      'SELECT session_id FROM sessions WHERE idle = 1 AND used_at < ? LIMIT 1',
    ),
    emptyWriteAheadLog: db.prepare<[], { busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)'),
    clearFigures: db.prepare<[owner: string]>('DELETE FROM figures WHERE owner = ?'),
    // The scopes that begin with the owner and a space; "!" is the character after the space.
    clearKeysOf: db.prepare<[owner: string, limit: number]>(
      `DELETE FROM keys WHERE (scope, key) IN
       (SELECT scope, key FROM keys WHERE scope > ?1 || ' ' AND scope < ?1 || '!' LIMIT ?2)`,
    ),
    deleteDeliveries: byId('DELETE FROM deliveries WHERE run_id = ?'),
    clearDeliveriesOf: some<[owner: string]>('deliveries', 'owner = ?'),
    clearDeliveries: db.prepare<[before: string, limit: number]>(
      `DELETE FROM deliveries WHERE position IN (
         SELECT position FROM deliveries INDEXED BY deliveries_ended WHERE due IS NULL AND created_at < ? LIMIT ?
       )`,
    ),
    clearUrlFailuresOf: db.prepare<[owner: string, limit: number]>(
      `DELETE FROM url_failures WHERE (owner, url) IN
       (SELECT owner, url FROM url_failures WHERE owner = ? LIMIT ?)`,
    ),
    clearUrlFailures: db.prepare<[before: string, limit: number]>(
      `DELETE FROM url_failures WHERE (owner, url) IN
       (SELECT owner, url FROM url_failures WHERE last_at < ? LIMIT ?)`,
    ),
    clearKeys: db.prepare<[string, number]>(
      'DELETE FROM keys WHERE (scope, key) IN (SELECT scope, key FROM keys WHERE created_at < ? LIMIT ?)',
    ),
  };
}

/** Lists of runs. The statement of each combination of filters is compiled when it is first used. */
function prepareRunLists(db: Database) {
  const compiled = new Map<string, Statement<Value[], RunRow>>();
  return ({ agent_name, session_id, status, owner, parked }: RunFilter, before: string, limit: number): RunRow[] => {
    const values: Value[] = [];
    const conditions: string[] = [notRemoved];
    for (const [value, condition] of [
      [agent_name, 'agent_name = ?'],
      [session_id, `session = ${sessionNumber}`],
      [owner, 'owner = ?'],
      [status, 'status = ?'],
    ] as const) {
      if (value === undefined) continue;
      values.push(value);
      conditions.push(condition);
    }
    const where = [...conditions, 'run_id < ?'].join(' AND ');
    const parts =
      parked === undefined
        ? partsOf(smallestList({ agent_name, session_id, owner }), status)
        : ['INDEXED BY runs_parked WHERE parked IS NOT NULL AND'];
    const selects = parts.map((part) => `SELECT ${columnList} FROM runs ${part} ${where}`);
    const sql = `${selects.join(' UNION ALL ')} ORDER BY run_id DESC LIMIT ?`;
    let statement = compiled.get(sql);
    if (statement === undefined) {
      statement = db.prepare(sql);
      compiled.set(sql, statement);
    }
    return statement.all(...parts.flatMap(() => [...values, before]), limit);
  };
}

/** The lists of runs that have indexes; a session has few runs, and an owner fewer than all. */
type List = 'runs_of_session' | 'runs_of_owner' | 'runs_of_agent';

/** The smallest list with all runs that match a filter; undefined for that of all runs. */
function smallestList({ agent_name, session_id, owner }: RunFilter): List | undefined {
  if (session_id !== undefined) return 'runs_of_session';
  if (owner !== undefined) return 'runs_of_owner';
  return agent_name === undefined ? undefined : 'runs_of_agent';
}

/**
 * The parts of a list, each with its index and the condition that this requires. Without statistics, SQLite cannot know
 * which index has few entries: an agent has many completed runs, and few failed ones.
 */
function partsOf(list: List | undefined, status: RunStatus | undefined): string[] {
  const part = (index: string, condition: string): string => `INDEXED BY ${index} WHERE ${condition} AND`;
  const mayBeOpen = status === undefined || isBrief(status);
  const mayBeFinal = status === undefined || status === 'completed';
  if (!mayBeOpen && !mayBeFinal) return [part(list === undefined ? 'runs_by_status' : `${list}_by_status`, rare)];
  if (list === 'runs_of_session')
    return [...(mayBeOpen ? [part(list, open)] : []), ...(mayBeFinal ? [part(list, final)] : [])];
  if (!mayBeFinal) return [part('runs_unfinished', 'finished_at IS NULL')];
  return [list === undefined ? 'WHERE' : part(list, 'true')];
}
