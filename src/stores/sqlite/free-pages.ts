import type { Database } from './driver.ts';

/** Pages that one step overwrites: about a megabyte, in some milliseconds. */
const stepPages = 256;

/**
 * Overwrites the pages that the file does not use at present. SQLite leaves the old content on them. `VACUUM` would
 * remove them as well, but it copies the whole file in one statement. `step` runs its work in transactions, with pauses
 * between them, until the work returns false.
 */
export async function overwriteFreePages(db: Database, step: (work: () => boolean) => Promise<void>): Promise<void> {
  const freePages = db.prepare<[], { freelist_count: number }>('PRAGMA freelist_count');
  const pageSize = db.prepare<[], { page_size: number }>('PRAGMA page_size').get()?.page_size ?? 0;
  const insert = db.prepare<[bytes: number]>('INSERT INTO zeros (body) VALUES (zeroblob(?))');
  const remove = db.prepare<[]>('DELETE FROM zeros WHERE position = (SELECT min(position) FROM zeros)');
  const countFree = (): number => freePages.get()?.freelist_count ?? 0;
  // All of them before any is free again: SQLite would use the same pages twice, and others never.
  await step(() => {
    const pages = Math.min(countFree(), stepPages);
    if (pages > 0) insert.run(pages * pageSize);
    return countFree() > 0;
  });
  await step(() => remove.run().changes > 0);
}

/** Moves the write-ahead log into the file, and empties it. @throws Error where another program reads the file */
export function emptyWriteAheadLog(db: Database, path: string): void {
  const found = db.prepare<[], { busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)').get();
  if (found?.busy === 1) {
    throw new Error(`another program reads ${path}, so its write-ahead log still has removed data; try again later`);
  }
}
