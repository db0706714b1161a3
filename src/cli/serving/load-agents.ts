import { readdir } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { isAgent } from '../../core/agent.ts';
import type { Hosted } from '../../engine/agents/registry.ts';
import { allowTypeScript, importModule } from './import-module.ts';

export const sourceFile = /\.(ts|js|mjs)$/;
export const ignoredName = /(^[._])|\.(d|test|spec)\.[a-z]+$/;
const indexFile = /^index\.(ts|js|mjs)$/;

/** The agents of some folders. */
export interface LoadedAgents {
  readonly hosted: readonly Hosted[];
  /** An error for each file that does not load: a line that names the file and the reason. */
  readonly broken: readonly Error[];
}

/**
 * Loads every agent of some folders: each file's default export, and each folder with an index.
 * Files that begin with a dot or an underscore, declarations and tests are ignored.
 * @throws Error with one line, where a folder has no agent or no file loads
 */
export async function loadAgents(folders: readonly string[]): Promise<LoadedAgents> {
  const files = (await Promise.all(folders.map(someAgentFiles))).flat();
  if (files.some((file) => file.endsWith('.ts'))) await allowTypeScript();
  const hosted: Hosted[] = [];
  const broken: Error[] = [];
  // One after the other, so that the errors come in the order of the files.
  for (const file of files) {
    await loadAgent(file).then(
      (one) => hosted.push(one),
      (error: Error) => broken.push(error),
    );
  }
  if (hosted.length === 0 && broken.length > 0) throw new Error(broken.map(({ message }) => message).join('\n'));
  return { hosted, broken };
}

async function someAgentFiles(folder: string): Promise<string[]> {
  const files = await agentFiles(folder);
  if (files.length > 0) return files;
  throw new Error(
    `${folder}: contains no agent; "npx rivulet new NAME" writes a first one in agents/, or add a .ts or .js file with a default export`,
  );
}

/** The files of a folder's agents. @throws Error if the folder cannot be read */
export async function agentFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') {
      throw new Error(`${folder}: there is no such folder; "npx rivulet new NAME" writes a first agent in agents/`);
    }
    if (error.code === 'ENOTDIR') throw new Error(`${folder}: is a file; give its folder, ${dirname(folder)}`);
    throw new Error(`${folder}: the folder of agents cannot be read: ${error.message}`);
  });
  const files: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (ignoredName.test(entry.name) || entry.name === 'node_modules') continue;
    const path = resolve(folder, entry.name);
    if (entry.isDirectory()) {
      const found = (await readdir(path)).filter((name) => indexFile.test(name)).sort()[0];
      if (found !== undefined) files.push(join(path, found));
    } else if (sourceFile.test(entry.name)) {
      files.push(path);
    }
  }
  return files;
}

/**
 * The agent of a file; a new `version` bypasses Node's module cache.
 * @throws Error with one line that names the file, and the line in it
 */
export async function loadAgent(file: string, version?: number): Promise<Hosted> {
  const name = relative('.', file);
  const module = await importModule(file, { name, kind: 'agents', version });
  if (!isAgent(module.default)) {
    throw new Error(
      `${name}: its default export is not an agent; write export default defineAgent(…) in ${basename(file)}`,
    );
  }
  return { agent: module.default, source: name };
}
