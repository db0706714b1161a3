import { closeSync, mkdirSync, openSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';

/** A value of a column; this store has no blobs. */
export type Value = string | number | null;

/** A compiled statement, with the types of its positional parameters and of its rows. */
export interface Statement<Parameters extends readonly Value[], Row = unknown> {
  run(...parameters: Parameters): { readonly changes: number; readonly lastInsertRowid: number };
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  iterate(...parameters: Parameters): Iterable<Row>;
}

/** The part of `DatabaseSync`, the interface of Node's own SQLite, that this store uses. */
export interface Database {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare<Parameters extends readonly Value[], Row = unknown>(sql: string): Statement<Parameters, Row>;
  close(): void;
}

type DatabaseClass = new (path: string, options?: { readOnly?: boolean }) => Database;

/** Node's own SQLite from 22.16 on, or the package `@photostructure/sqlite`, which has the same interface. */
const Driver: DatabaseClass = await loadDriver();

/** @throws Error where the file cannot be opened */
export function openDatabase(path: string, options: { readOnly?: boolean } = {}): Database {
  return new Driver(path, options);
}

/** Files and folders are for their owner alone: they have what all callers of the server said. */
const [ownFile, ownFolder] = [0o600, 0o700];

/**
 * Creates the file where it does not exist, and resolves links, so that a file has one path and one lock. SQLite gives the
 * files beside it, `-wal` and `-shm`, the same permissions.
 * @throws Error where it cannot be created
 */
export function createFile(path: string): string {
  mkdirSync(dirname(path), { recursive: true, mode: ownFolder });
  closeSync(openSync(path, 'a', ownFile));
  return realpathSync(path);
}

/**
 * Locks the file for this process, and returns the unlock function. The system unlocks it when the process dies. Like
 * any POSIX lock it is lost when the lock file is deleted, or when code of this process opens and closes it. So the
 * lock only gives the second process a clear error. The table `owner` in the file prevents two processes from writing.
 * `lockTimeout` is the time in milliseconds to wait for the lock. @throws Error where another process holds it
 */
export function lockFile(path: string, lockTimeout: number): () => void {
  createLockFile(`${path}-lock`);
  const file = openDatabase(`${path}-lock`);
  const release = (): void => {
    // The package would keep the lock of an open transaction until its statements are garbage-collected.
    if (file.isTransaction) file.exec('ROLLBACK');
    file.close();
  };
  try {
    // The lock file is never written, so it needs no journal.
    file.exec(`PRAGMA busy_timeout = ${lockTimeout}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`);
    return release;
  } catch (cause) {
    release();
    throw new Error(`${path} is in use by another process; stop that one, or give this one a store of its own`, {
      cause,
    });
  }
}

/** Leaves an existing file alone: to open and close it would end a lock that this process has. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', ownFile));
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw error;
  }
}

async function loadDriver(): Promise<DatabaseClass> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 16)) {
    const { DatabaseSync } = withoutWarning(() => process.getBuiltinModule('node:sqlite'));
    return DatabaseSync as unknown as DatabaseClass;
  }
  const { DatabaseSync } = await import('@photostructure/sqlite');
  return refusingNul(DatabaseSync as unknown as DatabaseClass);
}

/** Node 22 prints a warning that its SQLite is experimental. This hides that warning, and no other. */
function withoutWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * The package ends a text at its first NUL character, so that different names could be the same. This class refuses to
 * write a text with a NUL, and finds nothing for one. Costs about 50 ns a statement.
 */
function refusingNul(Inner: DatabaseClass): DatabaseClass {
  const hasNul = (parameters: readonly Value[]): boolean => {
    for (const value of parameters) if (typeof value === 'string' && value.includes('\0')) return true;
    return false;
  };
  return class extends Inner {
    override prepare<Parameters extends readonly Value[], Row>(sql: string): Statement<Parameters, Row> {
      const statement = super.prepare<Parameters, Row>(sql);
      const isLookup = /^\s*(SELECT|DELETE)/.test(sql);
      const isMissing = (parameters: Parameters): boolean => {
        if (!hasNul(parameters)) return false;
        if (isLookup) return true;
        throw new TypeError('SQLite cannot store a text with a NUL character');
      };
      const none = { changes: 0, lastInsertRowid: 0 };
      return {
        run: (...parameters) => (isMissing(parameters) ? none : statement.run(...parameters)),
        get: (...parameters) => (isMissing(parameters) ? undefined : statement.get(...parameters)),
        all: (...parameters) => (isMissing(parameters) ? [] : statement.all(...parameters)),
        iterate: (...parameters) => (isMissing(parameters) ? [] : statement.iterate(...parameters)),
      };
    }
  };
}

/** SQLite's result codes for errors of a statement or its values, as opposed to the file or the disk. */
const valueErrors = new Set([1, 11, 18, 19, 20, 25]);

/**
 * Whether the values of a write cause an error: a constraint, a text that is too long, a damaged page. After another
 * error of SQLite, such as a full disk or a held lock, the same write may succeed later.
 */
export function isValueError(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) : undefined;
  return code === undefined || valueErrors.has(code & 0xff);
}

/** SQLite's extended code for a primary key that exists already. */
const knownKey = 1555;

/** Whether a statement was refused because a row has its primary key already. */
export const isKnownKey = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && error.errcode === knownKey;

/** These URLs come from clients, and SQLite cannot store a NUL character. */
export const replaceNul = (url: string): string => (url.includes('\0') ? url.replaceAll('\0', '\ufffd') : url);
