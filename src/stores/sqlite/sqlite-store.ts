import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { charsOf, fullChars } from '../../core/lines.ts';
import type { AgentFigures, OpenRuns, RunFilter, StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type { Batch, Key, Outcome, RunRow, SharedColumn, SharedValue, Write } from '../../core/ports/run-store.ts';
import type { Resource, SessionRow } from '../../core/ports/session-store.ts';
import type { Cutoffs, Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { unpackLines } from '../packed-lines.ts';
import { Checkpoints, logSizeLimit } from './checkpoints.ts';
import { CommitLog } from './commit-log.ts';
import { FileDeliveries } from './deliveries.ts';
import { createFile, type Database, isValueError, lockFile, openDatabase } from './driver.ts';
import { FileFigures } from './figures.ts';
import { Numbers } from './numbers.ts';
import { prepareFile } from './schema.ts';
import { FileSessions } from './sessions.ts';
import { prepare, type Statements } from './statements.ts';
import { StatusLists } from './status-lists.ts';
import { removeOwned, removeRun, removeSession, sweepFor } from './sweep.ts';
import { Writes } from './writes.ts';

/** SQLite's page cache: 16 MB (negative values are KiB). The default of 2 MB would evict pages during a burst. */
const pageCacheSize = -16_000;

/** Milliseconds of one sweep, and of the wait for another program's lock. Both block the event loop. */
const sweepTime = 3;
const lockTime = 50;

/**
 * Keeps everything in one SQLite file, in WAL mode, for one process. A commit is one transaction, and all events of a
 * commit are one row: with one row an event, the limit would be about 120,000 events a second. With
 * `synchronous = NORMAL`, every commit survives a crash of the process. A power failure may lose the last commits, but
 * never damages the file.
 */
export class SqliteStore implements Store {
  readonly outbox: FileDeliveries;
  readonly #path: string;
  readonly #db: Database;
  readonly #sql: Statements;
  readonly #statusLists: StatusLists;
  readonly #unlock: () => void;
  readonly #log: CommitLog;
  readonly #numbers: Numbers;
  readonly #sessions: FileSessions;
  readonly #figures: FileFigures;
  readonly #writes: Writes;
  readonly #checkpoints: Checkpoints;
  /** Written into the file when it is opened. A process that finds another token there must not write any more. */
  readonly #token = randomUUID();
  /** Whether a transaction has failed, so that memory may differ from the file. */
  #failed = true;

  /**
   * `lockTimeout` is the time in milliseconds to wait for another process that uses the file. `open` opens the
   * database.
   * @throws Error where the file cannot be opened, is in use by another process, or has another version
   */
  constructor(path: string, lockTimeout = 5000, open: (path: string) => Database = openDatabase) {
    this.#path = path === ':memory:' ? path : createFile(path);
    this.#unlock = path === ':memory:' ? () => {} : lockFile(this.#path, lockTimeout);
    let db: Database | undefined;
    try {
      db = open(this.#path);
      db.exec(
        `PRAGMA busy_timeout = ${lockTimeout}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA cache_size = ${pageCacheSize}; PRAGMA journal_size_limit = ${logSizeLimit}`,
      );
      db.exec('BEGIN IMMEDIATE');
      prepareFile(db, this.#path);
      this.#sql = prepare(db, this.#token);
      this.#statusLists = new StatusLists(db);
      this.#sql.setOwner(this.#token);
      this.outbox = new FileDeliveries(db, {
        write: (work) => this.#transaction(work),
        read: (work) => {
          this.#recover();
          return work();
        },
      });
      this.outbox.release(new Date().toISOString());
      db.exec('COMMIT');
      db.exec(`PRAGMA busy_timeout = ${lockTime}`);
      this.#db = db;
      this.#log = new CommitLog(this.#sql);
      this.#numbers = new Numbers(this.#sql);
      this.#sessions = new FileSessions(this.#sql, this.#numbers);
      this.#figures = new FileFigures(this.#sql, this.#statusLists);
      this.#writes = new Writes(this.#sql, {
        log: this.#log,
        sessions: this.#sessions,
        deliveries: this.outbox,
        figures: this.#figures,
        numbers: this.#numbers,
      });
      this.#checkpoints = new Checkpoints(
        this.#path,
        (pages) => this.#db.exec(`PRAGMA wal_autocheckpoint = ${pages}`),
        // A disk that is full refuses it; the next one may be taken.
        () => void this.commit([]).catch(() => undefined),
      );
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
    for (;;) {
      /** The write that is being applied. */
      let at: number | undefined;
      try {
        return this.#transaction(() => {
          // The file has this already. SQLite writes the page all the same, which fails where the disk is full.
          if (writes.length === 0) this.#sql.setOwner(this.#token);
          const outcomes = writes.map((write, index): Outcome => {
            at = index;
            return rejected.has(index) ? { rejected: rejected.get(index) } : this.#writes.apply(write);
          });
          at = undefined;
          this.#log.flush();
          return outcomes;
        });
      } catch (error) {
        // The transaction was rolled back. It is repeated without the write that SQLite rejects.
        if (at === undefined || !isValueError(error)) throw error;
        rejected.set(at, error);
      }
    }
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    const [row] = this.#runs(({ run }) => run.all(run_id));
    return row;
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    const row = this.#reads.input.get(run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const sql = this.#reads;
    const newest = this.#log.events(run_id, after, limit);
    if (newest !== undefined && newest.first === after + 1) return [newest];
    const found: Batch[] = [];
    let count = 0;
    let chars = 0;
    for (const { first, body } of sql.events.iterate(run_id, after)) {
      if (found.length > 0 && body.length >= fullChars) return found;
      const lines = unpackLines(body);
      found.push({ first, lines });
      count += lines.length;
      chars += charsOf(lines);
      if (count >= limit || chars >= fullChars) return found;
    }
    return newest === undefined ? found : [...found, newest];
  }

  async journal(run_id: string): Promise<string[]> {
    const stored = this.#reads.journal.all(run_id).flatMap(({ body }) => body.split('\n'));
    return [...stored, ...this.#log.journal(run_id)];
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    return this.#runs(({ runs }) => runs(filter, before ?? '~', limit));
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    return this.#runs(() => this.#statusLists.page(filter, after, limit));
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    this.#recover();
    return this.#statusLists.count(filter);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return this.#runs(({ unfinished, unfinishedOfSession }) =>
      session_id === undefined ? unfinished.all(after, limit) : unfinishedOfSession.all(session_id, after, limit),
    );
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#runs(({ due }) => due.all(now, limit));
  }

  async count(session_id: string): Promise<number> {
    return this.#reads.count.get(session_id)?.count ?? 0;
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    const { openRuns, openRunsOf } = this.#reads;
    return owner === undefined ? openRuns.all() : openRunsOf.all(owner);
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#reads.key.get(scope, key);
  }

  async compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean> {
    const statement = column === 'targets' ? this.#sql.setTargets : this.#sql.setReaders;
    return this.#transaction(() => {
      const isSet = statement.run(after, run_id, before).changes > 0;
      if (isSet && column === 'targets') this.#log.retarget(run_id, after);
      return isSet;
    });
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    const { session, history } = this.#reads;
    const row = session.get(session_id);
    if (row === undefined) return undefined;
    return { session_id, state: row.state, history: history.all(row.session).map(({ url }) => url) };
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    const { resource } = this.#reads;
    return resource_ids.map((id) => resource.get(id));
  }

  async figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]> {
    this.#recover();
    return this.#figures.of(agent_names, owner);
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    return this.#reads.sessionsOf.all(owner, limit).map(({ session_id }) => session_id);
  }

  async remove(run_id: string): Promise<boolean> {
    return this.#transaction(() => {
      const run = this.#sql.endOfRun.get(run_id);
      if (run === undefined) return true;
      if (run.finished_at === null) return false;
      this.#figures.flush();
      removeRun(this.#sql, run_id, run.session, run.finished_at);
      return true;
    });
  }

  async removeSession(session_id: string): Promise<boolean> {
    return this.#transaction(() => {
      if (this.#sql.otherUnfinished.alone.get(session_id, '') !== undefined) return false;
      removeSession(this.#sql, session_id);
      return true;
    });
  }

  /**
   * Also clears what was removed before, and the copies of it in the commit log and the write-ahead log. SQLite overwrites
   * what it deletes (`secure_delete`). Where it moved rows of a page before, unused parts of pages may keep copies until
   * they are written again; only `VACUUM` removes these, and would block the server for as long as it copies the file.
   * @throws Error where another program reads the file, so that the write-ahead log cannot be emptied
   */
  async removeOwner(owner: string): Promise<void> {
    const before = { keys: '' };
    while (this.#transaction(() => this.#sweep(before) || removeOwned(this.#sql, owner))) await nextTurn();
    this.#transaction(() => this.#log.empty());
    const emptied = await this.#checkpoints.whenIdle(() => this.#sql.emptyWriteAheadLog.get());
    if (emptied?.busy !== 1) return;
    throw new Error(`another program reads ${this.#path}, so its write-ahead log still has removed data; try again`);
  }

  async sweep(before: Cutoffs): Promise<boolean> {
    return this.#transaction(() => this.#sweep(before));
  }

  async close(): Promise<void> {
    await this.#checkpoints.close();
    try {
      this.#transaction(() => this.#log.empty());
      // The package of Node 20 leaves SQLite's log as it is when it closes; a copy of the file alone has to be complete.
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      // Also after an error of the disk: the next process finds all commits in the log, and the file unlocked.
      if (this.#db.isTransaction) this.#sql.rollback();
      this.#db.close();
      this.#unlock();
    }
  }

  #sweep(before: Cutoffs): boolean {
    this.#figures.flush();
    return sweepFor(sweepTime, this.#sql, this.#statusLists, before);
  }

  /** Runs `work` in a transaction. */
  #transaction<T>(work: () => T): T {
    this.#recover();
    this.#sql.begin();
    this.#failed = true;
    try {
      if (this.#sql.otherOwner.get() !== undefined) {
        throw new Error(`${this.#path} was opened by another process, so this one may not write to it any more`);
      }
      const result = work();
      this.#sql.commit();
      this.#failed = false;
      this.#checkpoints.committed();
      return result;
    } catch (error) {
      // Some errors have rolled back already. Where this fails, `recover` rolls back.
      if (this.#db.isTransaction) this.#sql.rollback();
      throw error;
    }
  }

  /** After a failed transaction, reads the file again. */
  #recover(): void {
    if (!this.#failed) return;
    if (this.#db.isTransaction) this.#sql.rollback();
    this.#log.recover();
    this.#numbers.recover();
    this.#sessions.recover();
    this.#figures.recover();
    this.#failed = false;
  }

  /** The statements, for reading: what memory has of the file is up to date. */
  get #reads(): Statements {
    this.#recover();
    return this.#sql;
  }

  /** Rows of runs, each with the last event that is in the log. */
  #runs(read: (sql: Statements) => RunRow[]): RunRow[] {
    return read(this.#reads).map((row) => this.#log.current(row));
  }
}
