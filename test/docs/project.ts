import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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

export interface DocsProject {
  readonly folder: string;
  remove(): void;
}

/** A reader's project with the blocks of code of every page in files, each page in a folder of its own. */
export function docsProject(url: string): DocsProject {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-docs-'));
  linkPackages(folder);
  const files = new Map([['package.json', '{"type":"module"}']]);
  for (const block of inLanguage('ts', 'tsx')) files.set(pathOf(block), programOf(block, url));
  for (const block of inLanguage('yaml')) files.set(pathOf(block), block.text);
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  // The packages of the repository are found by its own paths.
  const compilerOptions = { jsxImportSource: 'react', noUnusedLocals: false };
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['**/*.ts', '**/*.tsx'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
