import Database from 'better-sqlite3';

/** Held as long as this process has the file; given back by the system if it dies. @throws Error where another has it */
export function lock(path: string, patience: number): Database.Database {
  const file = new Database(`${path}-lock`, { timeout: patience });
  try {
    // Nothing is ever written to it, so it needs no journal either.
    file.pragma('journal_mode = OFF');
    file.exec('BEGIN EXCLUSIVE');
    return file;
  } catch (cause) {
    file.close();
    throw new Error(`${path} is in use by another process; stop that one, or give this one a store of its own`, {
      cause,
    });
  }
}
