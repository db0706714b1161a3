import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

export interface Project {
  readonly folder: string;
  remove(): void;
}

/** A user's project in a temporary folder: its files, with rivulet and rxjs installed. */
export function makeProject(files: Record<string, string>): Project {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-made-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/rivulet'));
  symlinkSync(join(root, 'node_modules/rxjs'), join(folder, 'node_modules/rxjs'));
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
