import { readdir } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isAgent } from '../core/agent.ts';
import type { Hosted } from '../engine/registry.ts';

export const source = /\.(ts|js|mjs)$/;
export const aside = /(^[._])|\.(d|test|spec)\.[a-z]+$/;
const index = /^index\.(ts|js|mjs)$/;

/**
 * Loads every agent of a folder: each file's default export, and each folder with an index.
 * Files that begin with a dot or an underscore, declarations and tests are left aside.
 * @throws Error with one line that names the file and says why it does not load
 */
export async function loadAgents(folder: string): Promise<Hosted[]> {
  const files = await agentFiles(folder);
  if (files.length === 0)
    throw new Error(`${folder}: there is no agent in it; add a .ts or .js file with a default export`);
  if (files.some((file) => file.endsWith('.ts'))) await allowTypeScript();
  const hosted: Hosted[] = [];
  // One after the other, so that the first file in the alphabet is the one that an error names.
  for (const file of files) hosted.push(await loadAgent(file));
  return hosted;
}

/** Where the agents of a folder are. @throws Error where the folder cannot be read */
export async function agentFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: Error) => {
    throw new Error(`${folder}: cannot be read as a folder of agents: ${error.message}`);
  });
  const files: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (aside.test(entry.name) || entry.name === 'node_modules') continue;
    const path = resolve(folder, entry.name);
    if (entry.isDirectory()) {
      const found = (await readdir(path)).filter((name) => index.test(name)).sort()[0];
      if (found !== undefined) files.push(join(path, found));
    } else if (source.test(entry.name)) {
      files.push(path);
    }
  }
  return files;
}

/** Lets TypeScript be imported, through tsx, which is loaded only now. */
export async function allowTypeScript(): Promise<void> {
  const { register } = await import('tsx/esm/api');
  // Without anybody's tsconfig: its `paths` could lead an agent to another copy of rivulet than the one that serves it.
  register({ tsconfig: false });
}

/** The agent of a file; with a version, as the file is now. @throws Error with one line that names the file */
export async function loadAgent(file: string, version?: number): Promise<Hosted> {
  const name = relative('.', file);
  const mark = version === undefined ? '' : `?rivulet=${version}`;
  const module = await import(`${pathToFileURL(file).href}${mark}`).catch((error: unknown) => {
    throw new Error(`${name}: does not load: ${firstLine(error)}`, { cause: error });
  });
  if (!isAgent(module.default)) {
    throw new Error(
      `${name}: its default export is no agent; write export default defineAgent(…) in ${basename(file)}`,
    );
  }
  return { agent: module.default, source: name };
}

/** What an error says first; a line that ends with a colon says it in the next one. Files are named without their version. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [first = 'no reason given', second = ''] = text
    .replace(/\?rivulet=\d+/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  return first.endsWith(':') ? `${first} ${second}` : first;
}
