import { readFileSync } from 'node:fs';
import { KindGuard, type TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Command, Option } from 'commander';
import { isObject, messageOf } from '../../core/json.ts';
import { compile, type Problem, problemsOf } from '../../core/validate.ts';
import { fileProblem, UsageError } from '../exit-codes.ts';
import { suggestion } from '../terminal/format.ts';
import { authOptions } from './consequences.ts';
import { variableName } from './env-file.ts';
import { currentLimitName, list } from './options.ts';
import { type Row, rows, Settings, valueAt } from './settings.ts';
import { readSettingsFile, type SettingsFile } from './settings-file.ts';

/** Settings in force, and where each came from. */
export interface Resolved {
  readonly settings: Settings;
  /** The configuration file, if there is one. */
  readonly file: string | undefined;
  /** Where a setting came from: `--port`, `PORT`, `rivulet.yaml:4:7` or `default`. */
  origin(path: readonly string[]): string;
}

/** A text that a flag, an argument or a variable gives, and its value. */
interface Given {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly origin: string;
  /** For messages; undefined for a secret. */
  readonly text: string | undefined;
  /** The text is the content of a file. */
  readonly isFile?: boolean;
}

const check = compile(Settings, 'settings');

const keyOf = (path: readonly string[]): string => path.join('.');

/** Adds what a command needs that serves: the folders of agents, the flags of its settings, and limits. */
export function addServing(command: Command, { worker = false } = {}): Command {
  command.argument('[dirs...]', 'folders with agents (default: agents)');
  return addSettings(command, ({ names }) => !worker || names.worker === true).addOption(
    new Option('--limit <name=value>', 'set a limit of runs or requests; docs/durability.md lists them; repeatable')
      .env('RIVULET_LIMITS')
      .argParser(collect),
  );
}

/** Adds the flags of some settings, and the one that names the configuration file. */
export function addSettings(command: Command, isWanted: (row: Row) => boolean): Command {
  command.addOption(new Option('--config <file>', 'configuration: docs/configuration.md').env('RIVULET_CONFIG'));
  command.option('--env-file <file>', 'file with variables of the environment (default: .env, if there is one)');
  command.option('--no-env-file', 'do not read .env');
  for (const row of rows()) {
    if (row.names.flag !== undefined && isWanted(row)) command.addOption(optionOf(row, row.names.flag));
  }
  return command;
}

function optionOf({ schema, names: { env, help } }: Row, flag: string): Option {
  const option = new Option(flag, help ?? schema.description ?? '');
  if (env !== undefined) option.env(env);
  if (flag.startsWith('--no-')) return option;
  const { default: fallback } = schema;
  if (KindGuard.IsArray(schema)) return option.argParser(collect);
  return fallback === undefined || fallback === false ? option : option.default(String(fallback));
}

const collect = (text: string, previous: string | undefined): string =>
  previous === undefined ? text : `${previous},${text}`;

/**
 * The settings of a command, from its flags, its arguments, the environment, the configuration file and the defaults, in
 * this order of precedence.
 * @throws UsageError with a line for each mistake
 */
export async function resolveSettings(
  command: Command,
  folders: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Resolved> {
  const named = fromFlag(command, 'config') ?? (env.RIVULET_CONFIG || undefined);
  const file = await readSettingsFile(named);
  const problems = [...(file?.problems ?? [])];
  const given = new Map<string, Given>();
  const limits = fromFlag(command, 'limit');
  const all = [
    ...limitsIn(env.RIVULET_LIMITS ?? '', variableName('RIVULET_LIMITS'), problems),
    ...limitsIn(limits ?? '', '--limit', problems),
    ...rows().flatMap((row) => givenFor(row, command, env, problems)),
    ...(folders.length > 0 ? [{ path: ['agents'], value: folders, origin: 'arguments', text: folders.join(' ') }] : []),
  ];
  for (const one of all) given.set(keyOf(one.path), one);
  const values = structuredClone(file?.values ?? {});
  for (const { path, value } of given.values()) setAt(values, path, value);
  const settings: unknown = Value.Default(Settings, values);
  const ofSchema = problemsOf(Settings, settings);
  problems.push(
    ...ofSchema.map((problem) => lineFor(problem, given, file) + unitOf(problem) + got(given, problem.path)),
    ...checks(settings, ofSchema, given, file),
  );
  if (problems.length > 0) throw new UsageError(inOrder(problems).join('\n'));
  return {
    settings: check(settings),
    file: file?.name,
    origin: (path) =>
      given.get(keyOf(path))?.origin ??
      (file !== undefined && valueAt(file.values, path) !== undefined ? file.place(path) : 'default'),
  };
}

/** By file and line. */
const inOrder = (lines: readonly string[]): string[] =>
  lines.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));

/** What the command line has for an option; undefined for what comes from the environment or is a default. */
function fromFlag(command: Command, name: string): string | undefined {
  return command.getOptionValueSource(name) === 'cli' ? String(command.getOptionValue(name)) : undefined;
}

function givenFor({ path, schema, names }: Row, command: Command, env: NodeJS.ProcessEnv, problems: string[]): Given[] {
  const { flag, env: variable, secret } = names;
  const option = flag === undefined ? undefined : command.options.find(({ flags }) => flags === flag);
  const inFlag = option && fromFlag(command, option.attributeName());
  const found =
    inFlag === undefined
      ? variable && fromVariable(variable, secret !== undefined, env, problems)
      : [option?.long ?? '', inFlag];
  if (!found) return [];
  const [origin = '', text = ''] = found;
  const isFile = inFlag === undefined && origin !== variable;
  const shown = inFlag === undefined ? variableName(origin) : origin;
  return [{ path, origin: shown, value: valueIn(text, schema), text: secret === undefined ? text : undefined, isFile }];
}

/** The name and the text of a variable, or of the file that `NAME_FILE` names. An empty variable counts as not set. */
function fromVariable(
  name: string,
  isSecret: boolean,
  env: NodeJS.ProcessEnv,
  problems: string[],
): [origin: string, text: string] | undefined {
  const path = isSecret ? env[`${name}_FILE`] : undefined;
  if (!path) return env[name] ? [name, env[name]] : undefined;
  if (env[name]) problems.push(`${name} and ${name}_FILE are both set; remove one of them`);
  try {
    return [`${name}_FILE`, readFileSync(path, 'utf8').replace(/\r?\n$/, '')];
  } catch (error) {
    problems.push(`${name}_FILE: ${path}: ${fileProblem(error)}`);
    return undefined;
  }
}

/** The value that a text stands for. A text that does not fit stays, so that the check of the schema reports it. */
function valueIn(text: string, schema: TSchema): unknown {
  if (KindGuard.IsArray(schema)) return list(text);
  if (KindGuard.IsInteger(schema)) return /^\d+$/.test(text.trim()) ? Number(text) : text;
  if (KindGuard.IsBoolean(schema)) return text === 'true' || (text === 'false' ? false : text);
  return text;
}

/** The limits of `--limit name=value`, several separated by commas. */
function limitsIn(text: string, origin: string, problems: string[]): Given[] {
  return list(text).flatMap((item) => {
    const [givenName = '', ...rest] = item.split('=');
    const name = currentLimitName(givenName);
    const schema = Object.hasOwn(Settings.properties.limits.properties, name);
    if (!schema) {
      const names = Object.keys(Settings.properties.limits.properties);
      problems.push(`${origin}: there is no limit "${name}"; the limits are ${names.join(', ')}`);
      return [];
    }
    const value = rest.join('=');
    const number = /^\d+$/.test(value) ? Number(value) : value;
    return [{ path: ['limits', name], value: number, origin: `${origin} ${name}`, text: value }];
  });
}

function setAt(values: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key = '', ...rest] = path;
  if (rest.length === 0) {
    values[key] = value;
    return;
  }
  const inner = values[key];
  const section: Record<string, unknown> = isObject(inner) ? inner : {};
  // A section that is no object is a mistake of the file, which has to be reported.
  if (isObject(inner) || inner === undefined || inner === null) values[key] = section;
  setAt(section, rest, value);
}

/** The line that reports a mistake: where it is, which setting, what is wrong. */
function lineFor({ path, text, isUnknown }: Problem, given: ReadonlyMap<string, Given>, file?: SettingsFile): string {
  // A mistake in an item of a list belongs to the list.
  const source = given.get(keyOf(path)) ?? given.get(keyOf(path.slice(0, -1)));
  if (source !== undefined) return `${source.origin}: ${text}`;
  const place = file?.place(path, isUnknown) ?? 'defaults';
  if (!isUnknown) return `${place} ${keyOf(path)}: ${text}`;
  if (path[0] === 'runTtlByOwner')
    return `${place} ${keyOf(path)}: expected an owner, such as key:alice or tenant:acme`;
  return `${place} ${keyOf(path)}: there is no such setting.${suggestion(path.at(-1) ?? '', keysBeside(path))}`;
}

/** The unit of a time, for a value such as `30d`. All times of the limits are milliseconds, and described as `Time …`. */
function unitOf({ path: [section, name = ''], text }: Problem): string {
  if (section !== 'limits' || text !== 'expected integer') return '';
  const limits: Record<string, TSchema> = Settings.properties.limits.properties;
  return limits[name]?.description?.startsWith('Time ') ? ', in milliseconds' : '';
}

/** What was given instead; of a file, the place says it. */
function got(given: ReadonlyMap<string, Given>, path: readonly string[]): string {
  const text = given.get(keyOf(path))?.text;
  return text === undefined ? '' : `; got "${text}"`;
}

/** The keys that may stand in the place of an unknown one. */
function keysBeside(path: readonly string[]): string[] {
  const inside: TSchema | undefined = path
    .slice(0, -1)
    .reduce<TSchema | undefined>((schema, key) => schema?.properties?.[key], Settings);
  return Object.keys(inside?.properties ?? {});
}

/** The problems that only the checks of the settings find, beyond the schema. What does not fit the schema has one already. */
function checks(
  settings: unknown,
  ofSchema: readonly Problem[],
  given: ReadonlyMap<string, Given>,
  file?: SettingsFile,
): string[] {
  const isWrong = (path: readonly string[]): boolean =>
    ofSchema.some((problem) => path.every((key, at) => problem.path.length <= at || problem.path[at] === key));
  const wrong = rows().flatMap(({ path, schema, names: { check, secret } }) => {
    if (check === undefined || isWrong(path)) return [];
    // A check of a URL repeats it, and a file that was named by mistake may have anything.
    const isHidden = secret === 'url' && given.get(keyOf(path))?.isFile === true;
    const value = valueAt(settings, path);
    const texts = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return texts.flatMap((text: unknown, index) => {
      const why = reasonOf(() => check(String(text)));
      const at = Array.isArray(value) ? [...path, String(index)] : path;
      if (why === undefined) return [];
      const shown = isHidden ? `expected a file with ${schema.description}, and nothing else` : why;
      return [{ path: at, line: lineFor({ path: at, text: shown, isUnknown: false }, given, file) }];
    });
  });
  const lines = wrong.map(({ line }) => line);
  // What fits alone may not fit together.
  if (isWrong(['auth']) || wrong.some(({ path }) => path[0] === 'auth')) return lines;
  const { auth }: { auth: Settings['auth'] } = Object(settings);
  const together = reasonOf(() => authOptions({ auth }));
  return together === undefined ? lines : [...lines, together];
}

/** Why a check fails; undefined if it does not. */
function reasonOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
