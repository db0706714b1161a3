import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { firstValueFrom, from, fromEvent, map, merge, share } from 'rxjs';
import { isObject, messageOf } from '../../core/json.ts';
import { noteIfSlow, terminal } from '../terminal/terminal.ts';

interface ImportOptions {
  /** The file in messages. */
  readonly name: string;
  /** What the file has, in messages. */
  readonly kind: 'agents' | 'settings';
  /** A new one bypasses Node's module cache. */
  readonly version?: number | undefined;
}

/** Registers tsx, so that TypeScript can be imported. tsx is loaded only when it is needed. */
export async function allowTypeScript(): Promise<void> {
  const { register } = await import('tsx/esm/api');
  // Without a tsconfig: its `paths` could give an agent another copy of rivulet than the server's.
  register({ tsconfig: false });
}

/**
 * Fails when the process has nothing left to do that could settle an import. Otherwise it would end with exit code 0 and
 * no message. However many files load, the process has one listener.
 */
const neverSettles = fromEvent(process, 'beforeExit').pipe(
  map(() => {
    throw new Error('its top-level await never settles');
  }),
  share(),
);

/**
 * Imports an ES module of the project.
 * @throws Error with one line that names the file, and the line in it
 */
export async function importModule(
  file: string,
  { name, kind, version }: ImportOptions,
): Promise<Record<string, unknown>> {
  const query = version === undefined ? '' : `?rivulet=${version}`;
  const imported: Promise<Record<string, unknown>> = import(`${pathToFileURL(file).href}${query}`);
  const loaded = noteIfSlow(firstValueFrom(merge(from(imported), neverSettles)), (seconds) =>
    terminal.error(`rivulet: ${name}: has not loaded within ${seconds} s; its top-level await has not settled yet`),
  );
  const module = await loaded.catch((error: unknown) => {
    const why = isCommonJs(file, error) ? notModule(file, kind) : `${firstLine(error)}${placeOf(error)}`;
    throw new Error(`${name}: does not load: ${why}`, { cause: error });
  });
  // Its own `exports`: TypeScript was compiled to CommonJS.
  if (byPackage.test(file) && isObject(module.default) && module.default.__esModule === true) {
    throw new Error(`${name}: does not load: ${notModule(file, kind)}`);
  }
  return module;
}

/** Files whose package.json decides how they are loaded. */
const byPackage = /\.[tj]s$/;

/** What Node and tsx say where a file with `import` or `export` is loaded as CommonJS. */
const loadedAsCommonJs =
  /Cannot require\(\) ES Module|outside a module|Unexpected token 'export'|require\(\) of ES Module/;

/** What else it may look like, for TypeScript in a package that is not of modules: Node 26 finds tsx's CommonJS in a module. */
const maybeCommonJs = /^SyntaxError|is not defined in ES module scope/;

/** Whether a file fails because it is loaded as CommonJS. Node reads TypeScript without imports as JavaScript then. */
function isCommonJs(file: string, error: unknown): boolean {
  const text = String(error);
  return (
    loadedAsCommonJs.test(text) || (file.endsWith('.ts') && maybeCommonJs.test(text) && !isOfModules(packageOf(file)))
  );
}

const isOfModules = (owner: string | undefined): boolean =>
  owner !== undefined && JSON.parse(readFileSync(owner, 'utf8')).type === 'module';

function notModule(file: string, kind: ImportOptions['kind']): string {
  const owner = packageOf(file);
  const set = 'npm pkg set type=module';
  const why =
    owner === undefined
      ? `there is no package.json; run: npm init -y && ${set}`
      : `${relative('.', owner)} has not "type": "module"; run: ${set}`;
  return `${kind} are ES modules, and ${why}`;
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
  const text = messageOf(error);
  const [first = 'unknown error', second = ''] = text
    .replace(/\?rivulet=\d+/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  return first.endsWith(':') ? `${first} ${second}` : first;
}

/** The folder of this package: `src`, or `dist`. */
const own = new URL('../..', import.meta.url).href;
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
