import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder for temporary files. `after` is the hook of vitest that removes the folder: `onTestFinished` or `afterAll`. */
export function newFolder(after: (remove: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
