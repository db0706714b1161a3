import { randomUUID } from 'node:crypto';
import { isFinal } from '../../core/run-state.ts';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  Retention,
  RunFilter,
  RunRow,
  SessionRow,
  Store,
  Write,
} from '../../core/store.ts';
import type { Message } from '../../schema/message.ts';
import { summed } from '../figures.ts';
import { changing, columns, valuesOf } from '../run-columns.ts';
import { CommitLog } from './commit-log.ts';
import { type Database, isOfValues, openDatabase } from './driver.ts';
import { lock, realFile } from './lock.ts';
import { prepareFile } from './schema.ts';
import { remember } from './session.ts';
import { prepare, type Statements } from './statements.ts';
import { removeRun, sweepFor } from './sweep.ts';

/** 16 MB, as KiB below zero: SQLite's default of 2 MB is written out and read again in the middle of a burst. */
const cacheSize = -16_000;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageChars = 16 * 1024;

/** Milliseconds that one sweep takes, and that a commit waits for another program: nothing else goes on meanwhile. */
const sweepTime = 3;
const lockTime = 50;

/**
 * One file, one process, in WAL mode. A commit is one transaction, what runs append in it one row (a row an event would
 * top out near 120,000 a second). `synchronous = NORMAL` keeps every commit through a crash of the process; a power cut
 * may take the last ones, never the file.
 */
export class SqliteStore implements Store {
  readonly #path: string;
  readonly #db: Database;
  readonly #sql: Statements;
  readonly #unlock: () => void;
  readonly #log: CommitLog;
  /** Written into the file when it is opened; who finds another one there may not write any more. */
  readonly #token = randomUUID();
  /** Whether a transaction has failed, and what is in memory may not be what is in the file. */
  #failed = true;

  /**
   * `lockTimeout` is how long it waits for another process to let go of the file, in milliseconds; `open` makes the store's
   * connection.
   * @throws Error where the file cannot be opened, is in use by another process or of another Rivulet
   */
  constructor(path: string, lockTimeout = 5000, open: (path: string) => Database = openDatabase) {
    this.#path = path === ':memory:' ? path : realFile(path);
    this.#unlock = path === ':memory:' ? () => {} : lock(this.#path, lockTimeout);
    let db: Database | undefined;
    try {
      db = open(this.#path);
      db.exec(
        `PRAGMA busy_timeout = ${lockTimeout}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = ${cacheSize}`,
      );
      db.exec('BEGIN IMMEDIATE');
      prepareFile(db, this.#path);
      this.#sql = prepare(db);
      this.#sql.own.run(this.#token);
      db.exec('COMMIT');
      db.exec(`PRAGMA busy_timeout = ${lockTime}`);
      this.#db = db;
      this.#log = new CommitLog(this.#sql);
      this.#recover();
    } catch (error) {
      if (db?.isTransaction) db.exec('ROLLBACK');
      db?.close();
      this.#unlock();
      throw error;
    }
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    const rejected = new Map<number, unknown>();
    let at = 0;
    for (;;) {
      try {
        return this.#transaction(() => {
          const outcomes = writes.map((write, index): Outcome => {
            at = index;
            return rejected.has(index) ? { rejected: rejected.get(index) } : this.#take(write);
          });
          at = writes.length;
          this.#log.flush();
          for (const { agent_name, completed, failed, tokens, seconds } of summed(writes, outcomes)) {
            this.#sql.addFigures.run(agent_name, completed, failed, tokens, seconds);
          }
          return outcomes;
        });
      } catch (error) {
        // All of it is undone, and all but the one that cannot be kept is tried again.
        if (!this.#failed || at >= writes.length || !isOfValues(error)) throw error;
        rejected.set(at, error);
      }
    }
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    this.#recover();
    const row = this.#sql.run.get(run_id);
    return row && this.#log.current(row);
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const row = this.#sql.input.get(run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    this.#recover();
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
    this.#recover();
    const kept = this.#sql.journal.all(run_id).flatMap(({ body }) => body.split('\n'));
    return [...kept, ...this.#log.journal(run_id)];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    return this.#current(this.#sql.runs(filter, before ?? '~', limit));
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return this.#current(
      session_id === undefined
        ? this.#sql.unfinished.all(after, limit)
        : this.#sql.unfinishedOfSession.all(session_id, after, limit),
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#current(this.#sql.due.all(now, limit));
  }

  async count(session_id: string): Promise<number> {
    return this.#sql.count.get(session_id)?.count ?? 0;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#sql.key.get(scope, key);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const row = this.#sql.session.get(session_id);
    if (row === undefined) return undefined;
    return { session_id, state: row.state, history: this.#sql.history.all(row.session).map(({ url }) => url) };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    return resource_ids.map((id) => this.#sql.resource.get(id));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return this.#sql.figures.all(JSON.stringify(agent_names));
  }

  async remove(run_id: string): Promise<boolean> {
    return this.#transaction(() => {
      const run = this.#sql.final.get(run_id);
      if (run === undefined) return true;
      if (run.finished_at === null) return false;
      removeRun(this.#sql, run_id, run.session, run.finished_at);
      return true;
    });
  }

  async removeSession(session_id: string): Promise<boolean> {
    return this.#transaction(() => {
      const known = this.#sql.session.get(session_id);
      if (known === undefined) return true;
      if (this.#sql.others.alone.get(session_id, '') !== undefined) return false;
      this.#sql.forgetSession.run(known.session);
      return true;
    });
  }

  async sweep(before: Retention): Promise<boolean> {
    return this.#transaction(() => sweepFor(sweepTime, this.#sql, before));
  }

  async close(): Promise<void> {
    try {
      this.#transaction(() => this.#log.empty());
    } finally {
      // Whatever the disk says: the next process finds all of it in the log, and the file free.
      if (this.#db.isTransaction) this.#sql.rollback.run();
      this.#db.close();
      this.#unlock();
    }
  }

  /** All of it is kept, or none. */
  #transaction<T>(work: () => T): T {
    this.#recover();
    if (this.#db.isTransaction) this.#sql.rollback.run();
    this.#sql.begin.run();
    try {
      if (this.#sql.owner.get()?.token !== this.#token) {
        throw new Error(`${this.#path} was opened by another process, so this one may not write to it any more`);
      }
      this.#failed = true;
      const result = work();
      this.#sql.commit.run();
      this.#failed = false;
      return result;
    } catch (error) {
      // Some errors have ended it already. Where this fails, the next transaction begins with it.
      if (this.#db.isTransaction) this.#sql.rollback.run();
      throw error;
    }
  }

  /** After a transaction that failed, what is in memory is read again. */
  #recover(): void {
    if (!this.#failed) return;
    this.#log.recover();
    this.#failed = false;
  }

  #current(rows: RunRow[]): RunRow[] {
    this.#recover();
    return rows.map((row) => this.#log.current(row));
  }

  #take(write: Write): Outcome {
    if (isPlain(write)) return this.#log.append(write) ? 'taken' : 'fenced';
    const { row, expect, key, when } = write;
    const sql = this.#sql;
    const known = key && sql.key.get(key.scope, key.key);
    if (key !== undefined && known !== undefined && known.created_at >= key.fresh) return 'key_used';
    // The log of commits has ends of logs only: who is over is always in the table.
    if (when !== undefined && sql.others[when].get(row.session_id, row.run_id) !== undefined) return 'session_busy';
    const session = expect === 0 && write.input !== undefined ? this.#begin(write) : this.#change(write);
    if (session === undefined) return 'fenced';
    if (key !== undefined) sql.insertKey.run(key.scope, key.key, key.hash, key.run_id, key.after, key.created_at);
    if (write.resources || write.history || write.state !== undefined) remember(sql, write, session);
    return 'taken';
  }

  /** Makes a run. Answers its session's number; undefined where there is a run of that id. */
  #begin({ row, lines, journal, input }: Write): number | undefined {
    const isGrowing = !isFinal(row.status) && lines.length > 0;
    const values = valuesOf(isGrowing ? { ...row, last: 0 } : row, columns);
    const session = this.#sql.insertRun.get(...values, JSON.stringify(input), row.session_id)?.session;
    if (session === undefined) return undefined;
    this.#sql.insertSession.run(session, row.session_id, row.owner, row.created_at);
    if (isGrowing) this.#log.begin(row, lines, journal);
    else this.#append(row.run_id, 0, lines.length, lines, journal);
    return session;
  }

  /** What the log has of the run goes into the same rows. Answers its session's number; undefined where it is fenced. */
  #change({ row, expect, from = row.epoch, lines, journal = [] }: Write): number | undefined {
    const { run_id } = row;
    if (!this.#log.fits(run_id, from, expect)) return undefined;
    const { kept, ...before } = this.#log.release(run_id) ?? { kept: expect, texts: [], journal: [] };
    const session = this.#sql.updateRun.get(...valuesOf(row, changing), run_id, from, kept)?.session;
    if (session === undefined) {
      if (kept === expect) return undefined;
      throw new Error(`what is kept of run ${run_id} is not what was written`);
    }
    this.#append(run_id, kept, expect + lines.length, [...before.texts, ...lines], [...before.journal, ...journal]);
    return session;
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
const isPlain = ({ grown, lines, when, resources, history, state, ended, key }: Write): boolean =>
  grown === true && lines.length > 0 && !when && !resources && !history && state === undefined && !ended && !key;
