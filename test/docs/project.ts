import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Block, inLanguage, programOf, root } from './blocks.ts';

/** The name of a page's folder in the project. */
export const folderOf = ({ page }: Pick<Block, 'page'>): string => page.replace(/\W/g, '-').toLowerCase();

/** Where a block of code is in the project. */
export const pathOf = (block: Block): string =>
  join(folderOf(block), block.marks.get('file') ?? `line-${block.line}.${block.language}`);

/** All packages of the repository, and the repository as `rivulet`. */
function linkPackages(folder: string): void {
  const from = join(root, 'node_modules');
  const to = join(folder, 'node_modules');
  mkdirSync(to);
  for (const name of readdirSync(from)) if (!name.startsWith('.')) symlinkSync(join(from, name), join(to, name));
  symlinkSync(root, join(to, 'rivulet'));
}

export interface CodeProject {
  readonly folder: string;
  remove(): void;
}

/** A reader's project with files of code, to be run and to be checked by the TypeScript compiler. */
export function codeProject(files: ReadonlyMap<string, string>): CodeProject {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-docs-'));
  linkPackages(folder);
  // As for a reader, `rivulet` is the built package: its declarations take a third of the time of its sources.
  const compilerOptions = { jsxImportSource: 'react', noUnusedLocals: false, paths: {} };
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['**/*.ts', '**/*.tsx'] };
  const all = [...files, ['package.json', '{"type":"module"}'], ['tsconfig.json', JSON.stringify(config)]] as const;
  for (const [name, text] of all) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The errors that the TypeScript compiler finds in a project; empty if there are none. */
export const typeErrorsIn = ({ folder }: CodeProject): Promise<string> =>
  promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['-p', folder]).then(
    () => '',
    ({ stdout }) => String(stdout),
  );

/** A project with the blocks of code of every page in files, each page in a folder of its own. */
export function docsProject(url: string): CodeProject {
  const files = new Map<string, string>();
  for (const block of inLanguage('ts', 'tsx')) files.set(pathOf(block), programOf(block, url));
  for (const block of inLanguage('yaml')) files.set(pathOf(block), block.text);
  return codeProject(files);
}
