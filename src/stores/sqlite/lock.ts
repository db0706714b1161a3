import { closeSync, mkdirSync, openSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { openDatabase } from './driver.ts';

/**
 * The file that a path leads to, made where there is none: by whatever links it is reached, it has one name, and one
 * lock. @throws Error where it cannot be made
 */
export function realFile(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  closeSync(openSync(path, 'a'));
  return realpathSync(path);
}

/**
 * Held until it is called back, and given back by the system if the process dies. It can be lost, as any lock of POSIX
 * can: with the file, or when code of this process opens and closes it. So it keeps others out while all is well, and
 * says why; what keeps two from writing is the `owner` in the file itself.
 * `lockTimeout` is how long to wait for it, in milliseconds. @throws Error where another process has it
 */
export function lock(path: string, lockTimeout: number): () => void {
  const file = openDatabase(`${path}-lock`);
  const release = (): void => {
    // The package keeps an open transaction's lock until its statements are collected.
    if (file.isTransaction) file.exec('ROLLBACK');
    file.close();
  };
  try {
    // Nothing is ever written to it, so it needs no journal either.
    file.exec(`PRAGMA busy_timeout = ${lockTimeout}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`);
    return release;
  } catch (cause) {
    release();
    throw new Error(`${path} is in use by another process; stop that one, or give this one a store of its own`, {
      cause,
    });
  }
}
