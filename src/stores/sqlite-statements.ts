import type Database from 'better-sqlite3';
import type { AgentFigures, Key, Resource, RunFilter, RunRow } from '../core/store.ts';
import type { RunStatus } from '../schema/run.ts';
import { changing, columns, list } from './run-columns.ts';
import { rare } from './sqlite-schema.ts';

type Sql<Parameters extends unknown[], Row = unknown> = Database.Statement<Parameters, Row>;
type ById = { run_id: string };
type Page = { after: string; limit: number };

// Written out, because the types of better-sqlite3 have names that a declaration file cannot say.
export interface Statements {
  // What each run needs has its parameters by place: to look each up by its name takes as long as the insert.
  readonly insertRun: Sql<[values: readonly unknown[], input: string]>;
  readonly updateRun: Sql<[values: readonly unknown[], run_id: string, from: number, expect: number]>;
  readonly insertCommit: Sql<[number, string]>;
  readonly trimCommits: Sql<[number]>;
  readonly moveEnd: Sql<[number, string]>;
  readonly insertEvents: Sql<[string, number, number, string]>;
  readonly insertJournal: Sql<[string, string]>;
  readonly insertKey: Sql<[Key & { fresh: string }]>;
  readonly insertSession: Sql<[string, string | null, string]>;
  readonly insertHistory: Sql<[session_id: string, of: string, url: string, run_id: string | null]>;
  readonly setState: Sql<[string, string]>;
  readonly insertResource: Sql<[string, string, string | null, string, string, listed: number]>;
  readonly addFigures: Sql<[AgentFigures]>;
  readonly commits: Sql<[], { body: string }>;
  readonly run: Sql<[string], RunRow>;
  readonly input: Sql<[string], { input: string }>;
  readonly events: Sql<[string, number], { first: number; body: string }>;
  readonly journal: Sql<[string], { body: string }>;
  readonly unfinished: Sql<[Page], RunRow>;
  readonly unfinishedOfSession: Sql<[Page & { session_id: string }], RunRow>;
  readonly othersBegun: Sql<[session_id: string, run_id: string]>;
  readonly due: Sql<[string, number], RunRow>;
  readonly key: Sql<[string, string], Key>;
  readonly session: Sql<[string], { state: string | null }>;
  readonly history: Sql<[string], { url: string }>;
  readonly resource: Sql<[string], Resource>;
  readonly figures: Sql<[string], AgentFigures>;
  readonly retire: readonly Sql<[ById]>[];
  readonly removeRun: readonly Sql<[ById]>[];
  readonly removeSession: readonly Sql<[{ session_id: string }]>[];
  readonly removed: Sql<[], ById>;
  readonly clearEvents: Sql<[string, number]>;
  readonly clearRemoved: Sql<[string]>;
  readonly retired: Sql<[string], ById>;
  readonly clearKeys: Sql<[string, number]>;
  runs(filter: RunFilter): Sql<[RunFilter & { before: string; limit: number }], RunRow>;
}

/** Every statement, compiled once when the file is opened. */
export function prepare(db: Database.Database): Statements {
  return { ...writing(db), ...reading(db), ...clearing(db), runs: listing(db) };
}

function writing(db: Database.Database) {
  return {
    insertRun: db.prepare<[readonly unknown[], string]>(
      `INSERT OR IGNORE INTO runs (${list}, input) VALUES (${columns.map(() => '?').join(', ')}, ?)`,
    ),
    // The fence: only the execution of this epoch, only at the end of the log, and never after the end.
    updateRun: db.prepare<[readonly unknown[], string, number, number]>(
      `UPDATE runs SET ${changing.map((one) => `${one} = ?`).join(', ')}
       WHERE run_id = ? AND epoch = ? AND last = ? AND finished_at IS NULL`,
    ),
    insertCommit: db.prepare<[number, string]>('INSERT INTO commits (position, body) VALUES (?, ?)'),
    trimCommits: db.prepare<[number]>('DELETE FROM commits WHERE position < ?'),
    // Without a fence, which the log of commits has been, and without indexed columns.
    moveEnd: db.prepare<[number, string]>('UPDATE runs SET last = ? WHERE run_id = ?'),
    insertEvents: db.prepare<[string, number, number, string]>(
      'INSERT INTO events (run_id, first, last, body) VALUES (?, ?, ?, ?)',
    ),
    insertJournal: db.prepare<[string, string]>('INSERT INTO journal (run_id, body) VALUES (?, ?)'),
    insertKey: db.prepare<[Key & { fresh: string }]>(
      `INSERT INTO keys (scope, key, hash, run_id, after, created_at)
       VALUES (@scope, @key, @hash, @run_id, @after, @created_at)
       ON CONFLICT (scope, key) DO UPDATE SET hash = excluded.hash, run_id = excluded.run_id,
       after = excluded.after, created_at = excluded.created_at WHERE keys.created_at < @fresh`,
    ),
    insertSession: db.prepare<[string, string | null, string]>(
      'INSERT OR IGNORE INTO sessions (session_id, owner, created_at) VALUES (?, ?, ?)',
    ),
    insertHistory: db.prepare<[string, string, string, string | null]>(
      `INSERT INTO history (session_id, position, url, run_id)
       VALUES (?, (SELECT coalesce(max(position), 0) + 1 FROM history WHERE session_id = ?), ?, ?)`,
    ),
    setState: db.prepare<[string, string]>('UPDATE sessions SET state = ? WHERE session_id = ?'),
    insertResource: db.prepare<[string, string, string | null, string, string, number]>(
      'INSERT INTO resources (resource_id, session_id, run_id, content_type, body, listed) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    addFigures: db.prepare<[AgentFigures]>(
      `INSERT INTO figures (agent_name, completed, failed, tokens, seconds)
       VALUES (@agent_name, @completed, @failed, @tokens, @seconds)
       ON CONFLICT (agent_name) DO UPDATE SET completed = completed + excluded.completed,
       failed = failed + excluded.failed, tokens = tokens + excluded.tokens, seconds = seconds + excluded.seconds`,
    ),
  };
}

function reading(db: Database.Database) {
  return {
    commits: db.prepare<[], { body: string }>('SELECT body FROM commits ORDER BY position'),
    run: db.prepare<[string], RunRow>(`SELECT ${list} FROM runs WHERE run_id = ?`),
    input: db.prepare<[string], { input: string }>('SELECT input FROM runs WHERE run_id = ?'),
    events: db.prepare<[string, number], { first: number; body: string }>(
      'SELECT first, body FROM events WHERE run_id = ? AND last > ? ORDER BY last',
    ),
    journal: db.prepare<[string], { body: string }>('SELECT body FROM journal WHERE run_id = ? ORDER BY position'),
    unfinished: db.prepare<[{ after: string; limit: number }], RunRow>(
      `SELECT ${list} FROM runs WHERE finished_at IS NULL AND run_id > @after ORDER BY run_id LIMIT @limit`,
    ),
    unfinishedOfSession: db.prepare<[{ session_id: string; after: string; limit: number }], RunRow>(
      `SELECT ${list} FROM runs WHERE session_id = @session_id AND finished_at IS NULL AND run_id > @after
       ORDER BY run_id LIMIT @limit`,
    ),
    othersBegun: db.prepare<[string, string]>(
      `SELECT 1 FROM runs WHERE session_id = ? AND run_id <> ? AND finished_at IS NULL AND queued_at IS NULL LIMIT 1`,
    ),
    due: db.prepare<[string, number], RunRow>(`SELECT ${list} FROM runs WHERE due <= ? ORDER BY due LIMIT ?`),
    key: db.prepare<[string, string], Key>(
      'SELECT scope, key, hash, run_id, after, created_at FROM keys WHERE scope = ? AND key = ?',
    ),
    session: db.prepare<[string], { state: string | null }>('SELECT state FROM sessions WHERE session_id = ?'),
    history: db.prepare<[string], { url: string }>('SELECT url FROM history WHERE session_id = ? ORDER BY position'),
    resource: db.prepare<[string], Resource>(
      'SELECT resource_id, session_id, run_id, content_type, body FROM resources WHERE resource_id = ?',
    ),
    figures: db.prepare<[string], AgentFigures>(
      `SELECT agent_name, completed, failed, tokens, seconds FROM figures
       WHERE agent_name IN (SELECT value FROM json_each(?))`,
    ),
  };
}

function clearing(db: Database.Database) {
  const ofRun = 'session_id = (SELECT session_id FROM runs WHERE run_id = @run_id) AND run_id = @run_id';
  const listed = "SELECT substr(url, length('/resources/') + 1) FROM history WHERE";
  const run = (sql: string) => db.prepare<[{ run_id: string }]>(sql);
  const session = (sql: string) => db.prepare<[{ session_id: string }]>(sql);
  // What retention takes: the run and its journal, while its messages stay in the session's history.
  const retire = [
    run('INSERT OR IGNORE INTO removed (run_id) VALUES (@run_id)'),
    run('DELETE FROM journal WHERE run_id = @run_id'),
    run('DELETE FROM runs WHERE run_id = @run_id'),
  ];
  return {
    retire,
    removeRun: [
      run(`DELETE FROM resources WHERE ${ofRun} AND listed = 0`),
      run(`DELETE FROM resources WHERE resource_id IN (${listed} ${ofRun})`),
      run(`DELETE FROM history WHERE ${ofRun}`),
      ...retire,
    ],
    removeSession: [
      session('INSERT OR IGNORE INTO removed (run_id) SELECT run_id FROM runs WHERE session_id = @session_id'),
      session('DELETE FROM journal WHERE run_id IN (SELECT run_id FROM runs WHERE session_id = @session_id)'),
      session('DELETE FROM runs WHERE session_id = @session_id'),
      session('DELETE FROM resources WHERE session_id = @session_id AND listed = 0'),
      session(`DELETE FROM resources WHERE resource_id IN (${listed} session_id = @session_id AND run_id IS NOT NULL)`),
      session('DELETE FROM history WHERE session_id = @session_id'),
      session('DELETE FROM sessions WHERE session_id = @session_id'),
    ],
    removed: db.prepare<[], { run_id: string }>('SELECT run_id FROM removed LIMIT 1'),
    clearEvents: db.prepare<[string, number]>(
      'DELETE FROM events WHERE position IN (SELECT position FROM events WHERE run_id = ? LIMIT ?)',
    ),
    clearRemoved: db.prepare<[string]>('DELETE FROM removed WHERE run_id = ?'),
    retired: db.prepare<[string], { run_id: string }>('SELECT run_id FROM runs WHERE finished_at < ? LIMIT 1'),
    clearKeys: db.prepare<[string, number]>(
      'DELETE FROM keys WHERE (scope, key) IN (SELECT scope, key FROM keys WHERE created_at < ? LIMIT ?)',
    ),
  };
}

/** A statement for each combination of filters, compiled when it is first asked for. */
function listing(db: Database.Database) {
  const known = new Map<string, Database.Statement<[RunFilter & { before: string; limit: number }], RunRow>>();
  return (filter: RunFilter) => {
    const keys = (['agent_name', 'session_id', 'status'] as const).filter((key) => filter[key] !== undefined);
    const where = `${keys.map((key) => `${key} = @${key} AND `).join('')}${indexed(filter.status)}`;
    let statement = known.get(where);
    if (statement === undefined) {
      statement = db.prepare(
        `SELECT ${list} FROM runs WHERE ${where}run_id < @before ORDER BY run_id DESC LIMIT @limit`,
      );
      known.set(where, statement);
    }
    return statement;
  };
}

/** The term that lets a query for a status use the index that has it; completed runs are most, and need none. */
function indexed(status: RunStatus | undefined): string {
  if (status === 'created' || status === 'in-progress') return 'finished_at IS NULL AND ';
  return status === undefined || status === 'completed' ? '' : `${rare} AND `;
}
