import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { storeName } from '../../stores/open.ts';
import { backupFile, type Copied, restoreFile } from '../../stores/sqlite/backup-file.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { storeFile } from '../settings/consequences.ts';
import { resolveSettings } from '../settings/resolve-settings.ts';
import { terminal } from '../terminal/terminal.ts';

/** Copies the store to a new file. @throws Error with one line that says why it cannot */
export async function backup(target: string, _: unknown, command: Command): Promise<number> {
  const path = await fileOf(command);
  if (!existsSync(path)) throw new UsageError(`${path}: there is no store to back up; --store names another one`);
  terminal.print(`${path} was copied to ${target}: ${describe(backupFile(path, target))}`);
  return exit.completed;
}

/** Replaces the store by a backup, and keeps the replaced one. @throws Error with one line that says why it cannot */
export async function restore(source: string, _: unknown, command: Command): Promise<number> {
  const path = await fileOf(command);
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const { kept, ...copied } = restoreFile(source, path, `${path}.replaced-${time}`);
  terminal.print(`${path} was restored from ${source}: ${describe(copied)}`);
  if (kept !== undefined) terminal.print(`The replaced store is ${kept}. Remove it once the server works.`);
  return exit.completed;
}

async function fileOf(command: Command): Promise<string> {
  const { store } = (await resolveSettings(command, [])).settings;
  const path = storeFile(store);
  if (path !== undefined) return path;
  throw new UsageError(
    `only a store in SQLite is a file that can be copied; got ${storeName(store)}; docs/backup.md has the tools of the others`,
  );
}

const describe = ({ bytes, version }: Copied): string =>
  `${(bytes / 1024 / 1024).toFixed(1)} MB, version ${version}, checked`;
