import { isIP } from 'node:net';
import type { Command } from 'commander';
import { storeName } from '../../stores/open.ts';
import { exit } from '../exit-codes.ts';
import { authOptions, refuseOpenAccess, storeFile, warningsOf } from '../settings/consequences.ts';
import { resolveSettings } from '../settings/resolve-settings.ts';
import { fileSchema, type Row, rows, type Settings, valueAt } from '../settings/settings.ts';
import { redactCredentials } from '../terminal/format.ts';
import { table, terminal } from '../terminal/terminal.ts';

interface ConfigOptions {
  readonly check?: boolean;
  readonly schema?: boolean;
}

/**
 * Prints the settings in force, where each came from, what follows from them, and warnings. `--check` prints the
 * warnings only, `--schema` the JSON Schema of the file.
 * @throws UsageError with a line for each mistake
 */
export async function config(folders: readonly string[], options: ConfigOptions, command: Command): Promise<number> {
  if (options.schema) {
    terminal.answer(`${fileSchema()}\n`);
    return exit.completed;
  }
  const { settings, file, origin } = await resolveSettings(command, folders);
  // `serve` would not start.
  if (options.check) refuseOpenAccess(settings, authOptions(settings));
  else {
    table(
      ['setting', 'value', 'from'],
      rows().map((row) => [row.path.join('.'), shown(row, settings), origin(row.path)]),
    );
    terminal.print('');
    for (const line of consequences(settings, file)) terminal.print(redactCredentials(line));
  }
  for (const warning of warningsOf(settings)) terminal.note(`Warning: ${warning}`, 'yellow');
  return exit.completed;
}

/** The value of a setting; of a secret, only its last four characters; of a URL, all but its credentials. */
function shown({ path, names }: Row, settings: Settings): string {
  const value = valueAt(settings, path);
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  const text = Array.isArray(value)
    ? value.join(', ')
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);
  if (names.secret === 'url') return storeName(text);
  return names.secret === 'text' ? masked(text) : redactCredentials(text);
}

/** Of a short secret, four characters would tell too much. */
const masked = (secret: string): string => (secret.length < 16 ? '***' : `***${secret.slice(-4)}`);

/** What follows from several settings together. */
function consequences(settings: Settings, file: string | undefined): string[] {
  const { host, port, publicUrl, allowHosts, store, worker } = settings;
  const names = [publicUrl && new URL(publicUrl).hostname, isIP(host) === 0 ? host : undefined, ...allowHosts];
  const data = storeFile(store);
  return [
    `Configuration: ${file ?? 'no file'}`,
    `Listens on: ${host.includes(':') ? `[${host}]` : host}:${port}`,
    `Answers to: localhost, its own addresses${names.map((name) => (name ? `, ${name}` : '')).join('')}`,
    `Lets in: ${callersOf(settings)}`,
    `Executes runs: ${worker ? 'yes' : 'no, other nodes do'}`,
    ...(data === undefined ? [] : [`Data: ${data}, with -wal and -shm beside it`]),
  ];
}

/** How callers are authenticated, and what they may see. */
function callersOf(settings: Settings): string {
  const auth = authOptions(settings);
  if (auth === undefined) return 'every caller, as the operator; each sees all runs';
  const ways = [
    auth.keys && 'keys of RIVULET_API_KEYS',
    auth.keyFile && `keys of ${auth.keyFile}`,
    auth.jwt && `tokens of ${auth.jwt.issuer}`,
  ];
  return `${ways.filter(Boolean).join(', ')}; each caller sees its own runs, or those of its tenant`;
}
