import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { isFinal } from '../core/status.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  RunFilter,
  RunRow,
  SessionRow,
  Store,
  Write,
} from '../core/store.ts';
import type { Message } from '../schema/message.ts';
import { summed } from './figures.ts';
import { changing, columns, valuesOf } from './run-columns.ts';
import { lock } from './sqlite-lock.ts';
import { CommitLog } from './sqlite-log.ts';
import { migrate } from './sqlite-schema.ts';
import { remember } from './sqlite-session.ts';
import { prepare, type Statements } from './sqlite-statements.ts';

/** How many rows of events one sweep deletes; a row is at most about 64 KiB. */
const sweepRows = 32;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageChars = 16 * 1024;

/**
 * One file, one process: better-sqlite3 in WAL mode. A commit is one transaction, what runs append in it one row
 * (a row an event would top out near 120,000 a second). `synchronous = NORMAL` keeps every commit through a
 * crash of the process; a power cut may take the last ones, never the file.
 */
export class SqliteStore implements Store {
  readonly #db: Database.Database;
  readonly #sql: Statements;
  readonly #lock: Database.Database | undefined;
  readonly #appended: CommitLog;
  /** Whether a transaction has failed, and what is in memory may not be what is in the file. */
  #failed = false;
  readonly #commit: (log: CommitLog, writes: readonly Write[]) => boolean[];
  readonly #recover: () => void;
  readonly #remove: (run_id: string) => void;
  readonly #removeSession: (session_id: string) => void;

  /**
   * `patience` is how long it waits for another process to let go of the file, in milliseconds.
   * @throws Error where the file cannot be opened, is in use by another process or of a newer Rivulet
   */
  constructor(path: string, patience = 5000) {
    if (path !== ':memory:') {
      mkdirSync(dirname(path), { recursive: true });
      this.#lock = lock(path, patience);
    }
    this.#db = new Database(path);
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = NORMAL');
    this.#db.pragma('busy_timeout = 5000');
    migrate(this.#db);
    this.#sql = prepare(this.#db);
    this.#appended = new CommitLog(this.#sql);
    this.#recover = this.#db.transaction(() => this.#appended.recover());
    this.#recover();
    this.#commit = this.#db.transaction((log: CommitLog, writes: readonly Write[]) => {
      const taken = writes.map((write) => this.#take(log, write));
      log.flush();
      for (const sums of summed(writes.filter((_, index) => taken[index]))) this.#sql.addFigures.run(sums);
      return taken;
    });
    this.#remove = this.#db.transaction((run_id: string) => {
      for (const statement of this.#sql.removeRun) statement.run({ run_id });
    });
    this.#removeSession = this.#db.transaction((session_id: string) => {
      for (const statement of this.#sql.removeSession) statement.run({ session_id });
    });
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const log = this.#log; // recovered, if need be, before the transaction
    try {
      return this.#commit(log, writes).map((taken) => (taken ? 'taken' : 'fenced'));
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const row = this.#sql.run.get(run_id);
    return row && this.#log.current(row);
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const row = this.#sql.input.get(run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const newest = this.#log.events(run_id, after, limit);
    if (newest !== undefined && newest.first === after + 1) return [newest];
    const found: Batch[] = [];
    let count = 0;
    let chars = 0;
    for (const { first, body } of this.#sql.events.iterate(run_id, after)) {
      const lines = body.split('\n');
      found.push({ first, lines });
      count += lines.length;
      chars += body.length;
      if (count >= limit || chars >= pageChars) return found;
    }
    return newest === undefined ? found : [...found, newest];
  }

  async journal(run_id: string): Promise<string[]> {
    const kept = this.#sql.journal.all(run_id).flatMap(({ body }) => body.split('\n'));
    return [...kept, ...this.#log.journal(run_id)];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    return this.#current(this.#sql.runs(filter).all({ ...filter, before: before ?? '~', limit }));
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return this.#current(
      session_id === undefined
        ? this.#sql.unfinished.all({ after, limit })
        : this.#sql.unfinishedOfSession.all({ session_id, after, limit }),
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#current(this.#sql.due.all(now, limit));
  }

  async count(session_id: string): Promise<number> {
    return this.#sql.unfinishedOfSession.all({ session_id, after: '', limit: 1e9 }).length;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#sql.key.get(scope, key);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const row = this.#sql.session.get(session_id);
    if (row === undefined) return undefined;
    return { session_id, state: row.state, history: this.#sql.history.all(session_id).map(({ url }) => url) };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    return resource_ids.map((id) => this.#sql.resource.get(id));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return this.#sql.figures.all(JSON.stringify(agent_names));
  }

  async remove(run_id: string): Promise<boolean> {
    this.#remove(run_id);
    return true;
  }

  async removeSession(session_id: string): Promise<boolean> {
    this.#removeSession(session_id);
    return true;
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
    try {
      this.#db.transaction(() => this.#log.empty())();
    } finally {
      // Whatever the disk says: the next process finds all of it in the log, and the file free.
      this.#db.close();
      this.#lock?.close();
    }
  }

  get #log(): CommitLog {
    if (this.#failed) {
      this.#recover();
      this.#failed = false;
    }
    return this.#appended;
  }

  #current(rows: RunRow[]): RunRow[] {
    return rows.map((row) => this.#log.current(row));
  }

  #take(log: CommitLog, write: Write): boolean {
    if (isPlain(write)) return log.append(write);
    const { row, expect, key } = write;
    const sql = this.#sql;
    const known = key && sql.key.get(key.scope, key.key);
    if (key !== undefined && known !== undefined && known.created_at >= key.fresh) return false;
    // The log of commits has ends of logs only: who has begun and who is over is always in the table.
    if (write.when !== undefined && sql.othersBegun.get(row.session_id, row.run_id) !== undefined) return false;
    if (!(expect === 0 && write.input !== undefined ? this.#begin(log, write) : this.#change(log, write))) return false;
    if (key !== undefined) sql.insertKey.run(key);
    remember(sql, write);
    return true;
  }

  #begin(log: CommitLog, { row, lines, journal, input, history, state }: Write): boolean {
    const isNew = !isFinal(row.status) && lines.length > 0;
    const { changes } = this.#sql.insertRun.run(
      valuesOf(isNew ? { ...row, last: 0 } : row, columns),
      JSON.stringify(input),
    );
    if (changes === 0) return false;
    if (history !== undefined || state !== undefined) {
      this.#sql.insertSession.run(row.session_id, row.owner, row.created_at);
    }
    if (isNew) log.begin(row, lines, journal);
    else this.#append(row.run_id, 0, lines.length, lines, journal);
    return true;
  }

  /** What the log has of the run goes into the same rows. */
  #change(log: CommitLog, { row, expect, from = row.epoch, lines, journal = [] }: Write): boolean {
    if (!log.fits(row.run_id, from, expect)) return false;
    const { kept, ...before } = log.release(row.run_id) ?? { kept: expect, texts: [], journal: [] };
    if (this.#sql.updateRun.run(valuesOf(row, changing), row.run_id, from, kept).changes === 0) {
      if (kept === expect) return false;
      throw new Error(`run ${row.run_id} was changed by somebody else, who may not write to this file`);
    }
    this.#append(row.run_id, kept, expect + lines.length, [...before.texts, ...lines], [...before.journal, ...journal]);
    return true;
  }

  /** Events after one until another, in as many texts as they come in. */
  #append(
    run_id: string,
    after: number,
    last: number,
    texts: readonly string[],
    journal: readonly string[] = [],
  ): void {
    if (last > after) this.#sql.insertEvents.run(run_id, after + 1, last, texts.join('\n'));
    if (journal.length > 0) this.#sql.insertJournal.run(run_id, journal.join('\n'));
  }
}

/** Whether a write does nothing but go on with the log, as most do. */
const isPlain = ({ grown, when, resources, history, state, ended, key }: Write): boolean =>
  grown === true && when === undefined && !resources && !history && state === undefined && !ended && !key;
