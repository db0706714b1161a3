import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isAgent } from '../core/agent.ts';
import type { Hosted } from '../engine/registry.ts';

export const sourceFile = /\.(ts|js|mjs)$/;
export const ignoredName = /(^[._])|\.(d|test|spec)\.[a-z]+$/;
const indexFile = /^index\.(ts|js|mjs)$/;

/**
 * Loads every agent of a folder: each file's default export, and each folder with an index.
 * Files that begin with a dot or an underscore, declarations and tests are ignored.
 * @throws Error with one line that names the file and says why it does not load
 */
export async function loadAgents(folder: string): Promise<Hosted[]> {
  const files = await agentFiles(folder);
  if (files.length === 0) {
    throw new Error(
      `${folder}: contains no agent; "rivulet new NAME" writes a first one in agents/, or add a .ts or .js file with a default export`,
    );
  }
  if (files.some((file) => file.endsWith('.ts'))) await allowTypeScript();
  const hosted: Hosted[] = [];
  // One after the other, so that an error names the first file in the alphabet.
  for (const file of files) hosted.push(await loadAgent(file));
  return hosted;
}

/** The files of a folder's agents. @throws Error if the folder cannot be read */
export async function agentFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') {
      throw new Error(`${folder}: there is no such folder; "rivulet new NAME" writes a first agent in agents/`);
    }
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

/** Registers tsx, so that TypeScript can be imported. tsx is loaded only when it is needed. */
export async function allowTypeScript(): Promise<void> {
  const { register } = await import('tsx/esm/api');
  // Without a tsconfig: its `paths` could give an agent another copy of rivulet than the server's.
  register({ tsconfig: false });
}

/**
 * The agent of a file; a new `version` bypasses Node's module cache.
 * @throws Error with one line that names the file, and the line in it
 */
export async function loadAgent(file: string, version?: number): Promise<Hosted> {
  const name = relative('.', file);
  const query = version === undefined ? '' : `?rivulet=${version}`;
  const module = await import(`${pathToFileURL(file).href}${query}`).catch((error: unknown) => {
    if (loadedAsCommonJs.test(String(error))) throw notModule(file, error);
    throw new Error(`${name}: does not load: ${firstLine(error)}${placeOf(error)}`, { cause: error });
  });
  // Its own `exports`: TypeScript was compiled to CommonJS.
  if (isAgent(module.default?.default)) throw notModule(file);
  if (!isAgent(module.default)) {
    throw new Error(
      `${name}: its default export is not an agent; write export default defineAgent(…) in ${basename(file)}`,
    );
  }
  return { agent: module.default, source: name };
}

/** What Node and tsx say where a file with `import` or `export` is loaded as CommonJS. */
const loadedAsCommonJs =
  /Cannot require\(\) ES Module|outside a module|Unexpected token 'export'|require\(\) of ES Module/;

function notModule(file: string, cause?: unknown): Error {
  const owner = packageOf(file);
  const reason = owner === undefined ? 'there is no package.json' : `${relative('.', owner)} has not "type": "module"`;
  return new Error(
    `${relative('.', file)}: does not load: agents are ES modules, and ${reason}; run: npm pkg set type=module`,
    { cause },
  );
}

/** The package.json that decides how a file is loaded. */
function packageOf(file: string): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const path = join(folder, 'package.json');
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) return undefined;
  }
}

/** The first line of an error, and the second if the first ends with a colon. File versions are left out. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [first = 'unknown error', second = ''] = text
    .replace(/\?rivulet=\d+/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  return first.endsWith(':') ? `${first} ${second}` : first;
}

/** The folder of this package: `src`, or `dist`. */
const own = new URL('..', import.meta.url).href;
/** A line of a stack that ends with a place. */
const place = /(?:^|[\s(])(file:\/\/[^\s()]+|\/[^\s()]+?):(\d+)(?::(\d+))?\)?$/;

/** Where the author's code threw, as ` (agents/a.ts:3:7)`: the first line of the stack that is in no package. */
function placeOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  for (const line of stack.replace(/\?rivulet=\d+/g, '').split('\n')) {
    const [, at = '', row, column] = place.exec(line.trim()) ?? [];
    if (at === '') continue;
    const { href } = at.startsWith('/') ? pathToFileURL(at) : new URL(at);
    if (href.startsWith(own) || href.includes('/node_modules/')) continue;
    return ` (${[relative('.', fileURLToPath(href)), row, column].filter(Boolean).join(':')})`;
  }
  return '';
}
