import { existsSync } from 'node:fs';
import type { Inspection } from '../inspection.ts';
import { openDatabase } from './driver.ts';
import { fileVersion } from './schema.ts';

/** Reads the version of a file, also while a server writes to it. @throws Error where it is no database */
export function inspectFile(path: string): Inspection {
  if (path === ':memory:' || !existsSync(path)) return { version: undefined, known: fileVersion };
  const db = openDatabase(path, { readOnly: true });
  try {
    const row = db.prepare<[], { user_version: number }>('PRAGMA user_version').get();
    return { version: row?.user_version || undefined, known: fileVersion };
  } finally {
    db.close();
  }
}
