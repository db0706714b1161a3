import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import type { AgentFigures, Batch, Key, Resource, RunFilter, RunRow, SessionRow, Store, Write } from '../core/store.ts';
import type { Message } from '../schema/message.ts';
import { migrate } from './sqlite-schema.ts';
import { prepare, type Statements } from './sqlite-statements.ts';

/** How many rows of events one sweep deletes; a row is at most about 64 KiB. */
const sweepRows = 32;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageChars = 16 * 1024;

/**
 * One file, one writer: better-sqlite3 in WAL mode. A commit is one transaction, a batch of events one row
 * (a row an event would top out near 120,000 a second). `synchronous = NORMAL` keeps every commit through a
 * crash of the process; a power cut may take the last ones, never the file.
 */
export class SqliteStore implements Store {
  readonly #db: Database.Database;
  readonly #sql: Statements;
  readonly #commit: (writes: readonly Write[]) => boolean[];
  readonly #remove: (run_id: string) => void;
  readonly #removeSession: (session_id: string) => void;

  /** @throws Error of SQLite where the file cannot be opened or is of a newer Rivulet */
  constructor(path: string) {
    if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true });
    this.#db = new Database(path);
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = NORMAL');
    this.#db.pragma('busy_timeout = 5000');
    migrate(this.#db);
    this.#sql = prepare(this.#db);
    this.#commit = this.#db.transaction((writes: readonly Write[]) => writes.map((write) => this.#take(write)));
    this.#remove = this.#db.transaction((run_id: string) => {
      for (const statement of this.#sql.removeRun) statement.run({ run_id });
    });
    this.#removeSession = this.#db.transaction((session_id: string) => {
      for (const statement of this.#sql.removeSession) statement.run({ session_id });
    });
  }

  async commit(writes: readonly Write[]): Promise<boolean[]> {
    return this.#commit(writes);
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
    let chars = 0;
    for (const { first, body } of this.#sql.events.iterate(run_id, after)) {
      const lines = body.split('\n');
      found.push({ first, lines });
      count += lines.length;
      chars += body.length;
      if (count >= limit || chars >= pageChars) break;
    }
    return found;
  }

  async journal(run_id: string): Promise<string[]> {
    return this.#sql.journal.all(run_id).flatMap(({ body }) => body.split('\n'));
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    return this.#sql.runs(filter).all({ ...filter, before: before ?? '~', limit });
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return session_id === undefined
      ? this.#sql.unfinished.all({ after, limit })
      : this.#sql.unfinishedOfSession.all({ session_id, after, limit });
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#sql.due.all(now, limit);
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#sql.key.get(scope, key);
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

  async remove(run_id: string): Promise<void> {
    this.#remove(run_id);
  }

  async removeSession(session_id: string): Promise<void> {
    this.#removeSession(session_id);
  }

  async sweep(before: { runs?: string; keys: string }): Promise<boolean> {
    const sql = this.#sql;
    const removed = sql.removed.get();
    if (removed !== undefined) {
      if (sql.clearEvents.run(removed.run_id, sweepRows).changes < sweepRows) sql.clearRemoved.run(removed.run_id);
      return true;
    }
    const old = before.runs === undefined ? undefined : sql.retired.get(before.runs);
    if (old !== undefined) {
      for (const statement of sql.retire) statement.run(old);
      return true;
    }
    return sql.clearKeys.run(before.keys, sweepRows).changes === sweepRows;
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #take(write: Write): boolean {
    const { row, expect, lines } = write;
    const sql = this.#sql;
    if (write.key !== undefined && sql.insertKey.run(write.key).changes === 0) return false;
    const kept =
      expect === 0 && write.input !== undefined
        ? sql.insertRun.run({ ...row, input: JSON.stringify(write.input) })
        : write.grown === true
          ? sql.growRun.run(row.last, row.run_id, row.epoch, expect)
          : sql.updateRun.run({ ...row, expect, from: write.from ?? row.epoch });
    if (kept.changes === 0) return false;
    if (lines.length > 0) sql.insertEvents.run(row.run_id, expect + 1, expect + lines.length, lines.join('\n'));
    if (write.journal !== undefined) sql.insertJournal.run(row.run_id, write.journal.join('\n'));
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
