import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import type { AgentFigures, Batch, Resource, RunRow, SessionRow, Store, Write } from '../core/store.ts';
import type { Message } from '../schema/message.ts';
import { migrate } from './sqlite-schema.ts';

interface EventsRow {
  readonly first: number;
  readonly body: string;
}

/**
 * One file, one writer: better-sqlite3 in WAL mode. A commit is one transaction, a batch of events one row
 * (a row an event would top out near 120,000 a second). `synchronous = NORMAL` keeps every commit through a
 * crash of the process; a power cut may take the last ones, never the file.
 */
export class SqliteStore implements Store {
  readonly #db: Database.Database;
  readonly #sql: Statements;
  readonly #transaction: (writes: readonly Write[]) => boolean[];

  /** @throws Error of SQLite where the file cannot be opened or is of a newer Rivulet */
  constructor(path: string) {
    if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true });
    this.#db = new Database(path);
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = NORMAL');
    this.#db.pragma('busy_timeout = 5000');
    migrate(this.#db);
    this.#sql = prepare(this.#db);
    this.#transaction = this.#db.transaction((writes: readonly Write[]) => writes.map((write) => this.#take(write)));
  }

  async commit(writes: readonly Write[]): Promise<boolean[]> {
    return this.#transaction(writes);
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#sql.run.get(run_id);
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const row = this.#sql.input.get(run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const found: Batch[] = [];
    let count = 0;
    for (const { first, body } of this.#sql.events.iterate(run_id, after)) {
      const lines = body.split('\n');
      found.push({ first, lines });
      count += lines.length;
      if (count >= limit) break;
    }
    return found;
  }

  async unfinished(limit: number): Promise<RunRow[]> {
    return this.#sql.unfinished.all(limit);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const row = this.#sql.session.get(session_id);
    if (row === undefined) return undefined;
    return { session_id, state: row.state, history: this.#sql.history.all(session_id).map(({ url }) => url) };
  }

  async resource(resource_id: string): Promise<Resource | undefined> {
    return this.#sql.resource.get(resource_id);
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return this.#sql.figures.all(JSON.stringify(agent_names));
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #take(write: Write): boolean {
    const { row, expect, lines } = write;
    const sql = this.#sql;
    const kept =
      expect === 0 && write.input !== undefined
        ? sql.insertRun.run({ ...row, input: JSON.stringify(write.input) })
        : sql.updateRun.run({ ...row, expect });
    if (kept.changes === 0) return false;
    if (lines.length > 0) sql.insertEvents.run(row.run_id, expect + 1, row.last, lines.join('\n'));
    if (write.history !== undefined || write.state !== undefined) {
      sql.insertSession.run(row.session_id, row.owner, row.created_at);
    }
    for (const one of write.resources ?? []) sql.insertResource.run(one);
    for (const url of write.history ?? []) sql.insertHistory.run(row.session_id, url);
    if (write.state !== undefined) sql.setState.run(write.state, row.session_id);
    if (write.ended !== undefined) {
      const completed = row.status === 'completed' ? 1 : 0;
      const failed = row.status === 'failed' ? 1 : 0;
      sql.addFigures.run(row.agent_name, completed, failed, write.ended.tokens, write.ended.seconds);
    }
    return true;
  }
}

type Statements = ReturnType<typeof prepare>;

const columns = 'run_id, agent_name, session_id, owner, epoch, status, created_at, finished_at, last, snapshot';

/** Every statement, compiled once when the file is opened. */
function prepare(db: Database.Database) {
  return {
    insertRun: db.prepare<[RunRow & { input: string }]>(
      `INSERT OR IGNORE INTO runs (${columns}, input) VALUES (@run_id, @agent_name, @session_id, @owner, @epoch,
       @status, @created_at, @finished_at, @last, @snapshot, @input)`,
    ),
    // The fence: only the execution of this epoch, only at the end of the log, and never after the end.
    updateRun: db.prepare<[RunRow & { expect: number }]>(
      `UPDATE runs SET status = @status, finished_at = @finished_at, last = @last, snapshot = @snapshot
       WHERE run_id = @run_id AND epoch = @epoch AND last = @expect
       AND status NOT IN ('completed', 'failed', 'cancelled')`,
    ),
    insertEvents: db.prepare<[string, number, number, string]>(
      'INSERT INTO events (run_id, first, last, body) VALUES (?, ?, ?, ?)',
    ),
    insertSession: db.prepare<[string, string | null, string]>(
      'INSERT OR IGNORE INTO sessions (session_id, owner, created_at) VALUES (?, ?, ?)',
    ),
    insertHistory: db.prepare<[string, string]>('INSERT OR IGNORE INTO history (session_id, url) VALUES (?, ?)'),
    setState: db.prepare<[string, string]>('UPDATE sessions SET state = ? WHERE session_id = ?'),
    insertResource: db.prepare<[Resource]>(
      `INSERT INTO resources (resource_id, session_id, content_type, body)
       VALUES (@resource_id, @session_id, @content_type, @body)`,
    ),
    addFigures: db.prepare<[string, number, number, number, number]>(
      `INSERT INTO figures (agent_name, completed, failed, tokens, seconds) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (agent_name) DO UPDATE SET completed = completed + excluded.completed,
       failed = failed + excluded.failed, tokens = tokens + excluded.tokens, seconds = seconds + excluded.seconds`,
    ),
    run: db.prepare<[string], RunRow>(`SELECT ${columns} FROM runs WHERE run_id = ?`),
    input: db.prepare<[string], { input: string }>('SELECT input FROM runs WHERE run_id = ?'),
    events: db.prepare<[string, number], EventsRow>(
      'SELECT first, body FROM events WHERE run_id = ? AND last > ? ORDER BY last',
    ),
    unfinished: db.prepare<[number], RunRow>(
      `SELECT ${columns} FROM runs WHERE finished_at IS NULL ORDER BY created_at LIMIT ?`,
    ),
    session: db.prepare<[string], { state: string | null }>('SELECT state FROM sessions WHERE session_id = ?'),
    history: db.prepare<[string], { url: string }>('SELECT url FROM history WHERE session_id = ? ORDER BY position'),
    resource: db.prepare<[string], Resource>(
      'SELECT resource_id, session_id, content_type, body FROM resources WHERE resource_id = ?',
    ),
    figures: db.prepare<[string], AgentFigures>(
      `SELECT agent_name, completed, failed, tokens, seconds FROM figures
       WHERE agent_name IN (SELECT value FROM json_each(?))`,
    ),
  };
}
