import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { isObject } from '../../core/json.ts';
import { fileProblem, UsageError } from '../exit-codes.ts';

/** A configuration file that was read. Its values are not checked yet. */
export interface SettingsFile {
  readonly name: string;
  readonly values: Record<string, unknown>;
  /** Why the file has no values, with the place of each mistake. */
  readonly problems: readonly string[];
  /** The place of a value, or of its key, as `rivulet.yaml:4:15`. For code, the name of the file. */
  place(path: readonly string[], isKey?: boolean): string;
}

/** Looked for in the folder in which the program is started. */
const fileNames = ['rivulet.yaml', 'rivulet.json', 'rivulet.config.json', 'rivulet.config.ts', 'rivulet.config.js'];

const maxBytes = 1024 * 1024;

/**
 * The configuration file that an option names, or else the one in the current folder; undefined where there is none.
 * @throws UsageError where the file cannot be read, or the folder has several
 */
export async function readSettingsFile(named: string | undefined): Promise<SettingsFile | undefined> {
  const found = named === undefined ? fileNames.filter((name) => existsSync(name)) : [named];
  const [name] = found;
  if (name === undefined) return undefined;
  if (found.length > 1) {
    throw new UsageError(
      `${found.join(' and ')} are both here, and a server has one configuration; remove one, or choose it with --config`,
    );
  }
  try {
    const isCode = /^\.[mc]?[tj]s$/.test(extname(name));
    return isCode ? await readModule(name) : await readYaml(name);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${name}: ${fileProblem(error)}`);
  }
}

/** What to do about mistakes of YAML whose message is about syntax alone, by the code of the mistake. */
const advice: { readonly [code: string]: string } = {
  BLOCK_AS_IMPLICIT_KEY: '; put a value with a colon in quotes, such as "memory:"',
};

/** YAML; JSON is YAML as well. */
async function readYaml(name: string): Promise<SettingsFile> {
  if ((await stat(name)).size > maxBytes) throw new Error('it is larger than a megabyte');
  const yaml = await import('yaml');
  const lineCounter = new yaml.LineCounter();
  const document = yaml.parseDocument(await readFile(name, 'utf8'), { lineCounter, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lineCounter.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  const nodeAt = (path: readonly string[], isKey: boolean): unknown => {
    const key = path.at(-1);
    const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    if (!yaml.isMap(parent)) return document.getIn(path, true);
    const pair = parent.items.find((item) => yaml.isScalar(item.key) && String(item.key.value) === key);
    return isKey ? pair?.key : (pair?.value ?? pair?.key);
  };
  const place = (path: readonly string[], isKey = false): string => {
    // The place of a value that is missing is that of the nearest one around it.
    for (let length = path.length; length > 0; length -= 1) {
      const node = nodeAt(path.slice(0, length), isKey);
      if (yaml.isNode(node) && node.range) return at(node.range[0]);
    }
    return name;
  };
  const problems = document.errors.map(
    ({ pos: [start], code, message }) => `${at(start)} ${message}${advice[code] ?? ''}`,
  );
  // A file without a value is one without settings.
  const value = problems.length > 0 ? {} : (document.toJS({ maxAliasCount: 100 }) ?? {});
  return settingsFile(name, value, problems, place);
}

/** The default export of a module; TypeScript is allowed, as for agents. */
async function readModule(name: string): Promise<SettingsFile> {
  // It loads RxJS, which other commands start without.
  const { allowTypeScript, importModule } = await import('../serving/import-module.ts');
  if (name.endsWith('ts')) await allowTypeScript();
  const module = await importModule(resolve(name), { name, kind: 'settings' }).catch((error: Error) => {
    throw new UsageError(error.message, { cause: error });
  });
  if (!Object.hasOwn(module, 'default')) {
    const names = Object.keys(module).join(', ');
    throw new UsageError(`${name}: expected a default export; got ${names === '' ? 'no export' : `exports: ${names}`}`);
  }
  return settingsFile(name, module.default, [], () => name);
}

function settingsFile(
  name: string,
  value: unknown,
  problems: readonly string[],
  place: SettingsFile['place'],
): SettingsFile {
  // A module's values may be frozen, and functions are no settings.
  if (isObject(value)) return { name, values: structuredClone(value), problems, place };
  return { name, values: {}, problems: [`${name} expected settings, as "port: 9000"`], place };
}
