import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { messageOf } from '../../core/json.ts';
import { Registry } from '../../engine/agents/registry.ts';
import { parseKeySet } from '../../http/auth/jwks.ts';
import { makeKeyFile, parseKeyFile } from '../../http/auth/key-file.ts';
import type { KeyRecord } from '../../http/auth/key-records.ts';
import { version } from '../../http/version.ts';
import { inspectStore, storeName } from '../../stores/open.ts';
import { exit } from '../exit-codes.ts';
import { loadAgents } from '../serving/load-agents.ts';
import { authOptions, openAccess, storeFile, warningsOf } from '../settings/consequences.ts';
import type { Resolved } from '../settings/resolve-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { redactCredentials } from '../terminal/format.ts';
import { terminal } from '../terminal/terminal.ts';

/** What a check found. A problem keeps a server from working or makes it unsafe; a note is for the operator to judge. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'problem';
  readonly text: string;
  /** What to do about it. */
  readonly advice?: string;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const note = (text: string, advice?: string): Finding => ({ level: 'note', text, ...(advice && { advice }) });
export const problem = (text: string, advice: string): Finding => ({ level: 'problem', text, advice });

/** The oldest Node that package.json allows, and the oldest that still gets security fixes. */
const oldestNode = [20, 19] as const;
const supportedNode = 22;

/** Runs are ordered by the clocks of the nodes, and their times of expiry are compared with them. */
const maxClockDifference = 1_000;

const megabyte = 1024 * 1024;
const [leastSpace, littleSpace] = [100 * megabyte, 1024 * megabyte];

/** Each check, with the name that stands before its finding. */
const checks: readonly [name: string, check: (settings: Settings, resolved: Resolved) => Promise<Finding[]>][] = [
  ['node', async () => [checkNode(process.versions.node)]],
  ['settings', async (settings, { file }) => [ok(file ?? 'no configuration file'), ...checkWarnings(settings)]],
  ['agents', checkAgents],
  ['address', async (settings) => [await checkAddress(settings)]],
  ['metrics', async ({ metrics: { host, port } }) => (port === undefined ? [] : [await checkAddress({ host, port })])],
  ['callers', checkAuth],
  ['store', checkStore],
  ['files', async (settings, { file }) => checkFiles(settings, file)],
  ['disk', async (settings) => checkSpace(settings)],
];

/** Checks whether `serve` would work with the same settings. Changes nothing; exit code 1 where there is a problem. */
export async function doctor(settings: Settings, resolved: Resolved): Promise<number> {
  terminal.print(`Rivulet ${version()}`, 'bold');
  let problems = 0;
  for (const [name, check] of checks) {
    const findings = await check(settings, resolved).catch((error: unknown) => [problem(messageOf(error), '')]);
    for (const { level, text, advice } of findings) {
      if (level === 'problem') problems += 1;
      const style = { ok: undefined, note: 'yellow', problem: 'red' } as const;
      const line = `${level.padEnd(8)} ${name.padEnd(9)} ${text}${advice ? `; ${advice}` : ''}`;
      terminal.print(redactCredentials(line), style[level]);
    }
  }
  terminal.print(
    problems === 0 ? 'No problem found.' : `${problems === 1 ? 'One problem' : `${problems} problems`} found.`,
  );
  return problems === 0 ? exit.completed : exit.failed;
}

export function checkNode(found: string): Finding {
  const [major = 0, minor = 0] = found.split('.').map(Number);
  const [oldMajor, oldMinor] = oldestNode;
  if (major < oldMajor || (major === oldMajor && minor < oldMinor)) {
    return problem(`Node ${found} is too old`, `install Node ${supportedNode} or newer`);
  }
  if (major < supportedNode)
    return note(`Node ${found} gets no security fixes any more`, `install Node ${supportedNode}`);
  return ok(`Node ${found}`);
}

const checkWarnings = (settings: Settings): Finding[] =>
  warningsOf(settings)
    .filter((text) => text !== openAccess(settings))
    .map((text) => note(text));

async function checkAgents({ agents: folders }: Settings): Promise<Finding[]> {
  const { hosted, broken } = await loadAgents(folders);
  const names = new Registry(hosted).list().map(({ manifest }) => manifest.name);
  return [ok(names.join(', ')), ...broken.map(({ message }) => problem(message, 'serve would skip the file'))];
}

async function checkAddress({ host, port }: Pick<Settings, 'host' | 'port'>): Promise<Finding> {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
  if (error === undefined) return ok(`${address} is free`);
  if (error.code !== 'EADDRINUSE') return problem(`${address}: ${error.message}`, 'give another host or port');
  const answer = await fetch(`http://${address.replace(/^(0\.0\.0\.0|\[::\])/, '127.0.0.1')}/health`, {
    signal: AbortSignal.timeout(2_000),
  }).catch(() => undefined);
  const body: unknown = await answer?.json().catch(() => undefined);
  // Its own server, probably: `doctor` may be called while it runs.
  if (JSON.stringify(body) === '{"status":"ok"}') return note(`${address} has a server that answers /health`);
  return problem(`${address} is in use by another program`, 'stop it, or give another port');
}

async function checkStore({ store }: Settings): Promise<Finding[]> {
  const { version: found, known, clockAhead, warnings = [] } = await inspectStore(store);
  const name = storeName(store);
  const findings = warnings.map((text) => note(text));
  if (found !== undefined && found > known) {
    return [problem(`${name} has version ${found}, this Rivulet knows ${known}`, 'install the newer Rivulet again')];
  }
  if (clockAhead !== undefined && Math.abs(clockAhead) > maxClockDifference) {
    const text = `the store's clock is ${Math.abs(clockAhead)} ms ${clockAhead > 0 ? 'ahead of' : 'behind'} this one`;
    findings.push(problem(text, 'let NTP set the clocks of all nodes'));
  }
  const data = found === undefined ? 'nothing stored yet' : `version ${found}`;
  const clock = clockAhead === undefined ? '' : `, clock within ${Math.abs(clockAhead)} ms`;
  return [ok(`${name}: ${data}${clock}`), ...findings];
}

/**
 * Other users of the machine must not write the data or the configuration. They should not read the data; the server makes
 * files of its own that only their owner may read. The server refuses files of keys that the group may write, too.
 */
function checkFiles({ store, auth }: Settings, file: string | undefined): Finding[] {
  const data = storeFile(store);
  const folder = data && existingFolder(dirname(data));
  const findings = [
    ...[file, folder, data].flatMap((path) => permissionsOf(path, 0o002, 'every user')),
    ...[auth.keyFile, auth.jwt.jwks].flatMap((path) => permissionsOf(path, 0o022, 'other users')),
    ...(data === undefined ? [] : readersOf(data)),
  ];
  if (folder !== undefined && !isWritable(data !== undefined && existsSync(data) ? data : folder)) {
    findings.push(problem(`${folder}: this user may not write the store`, 'change its owner, or use another --store'));
  }
  return findings.length === 0
    ? [ok('no other user may read the data, or write it, the keys or the configuration')]
    : findings;
}

/** `writers`: the bits of those that must not write the file. A path that is none, such as a URL, has no findings. */
function permissionsOf(path: string | undefined, writers: number, users: string): Finding[] {
  if (path === undefined || !existsSync(path)) return [];
  const { mode } = statSync(path);
  const permissions = (mode & 0o777).toString(8);
  // A folder such as /tmp lets each user change only files of its own.
  const isSticky = (mode & 0o1000) !== 0;
  if ((mode & writers) !== 0 && !isSticky) {
    return [
      problem(`${path}: ${users} may write it (${permissions})`, `chmod ${writers === 0o002 ? 'o' : 'go'}-w ${path}`),
    ];
  }
  return [];
}

/** The files of a store, and its folder, that other users may read. */
function readersOf(data: string): Finding[] {
  // Windows has no such modes.
  if (!existsSync(data) || process.platform === 'win32') return [];
  const folder = dirname(data);
  // The working directory has files of other programs as well.
  const folders = folder === process.cwd() ? [] : [folder];
  const files = ['', '-wal', '-shm'].map((end) => data + end).filter((path) => existsSync(path));
  return [...folders, ...files].flatMap((path) => {
    const { mode } = statSync(path);
    const isOpen = (mode & 0o077) !== 0 && (mode & 0o1000) === 0;
    return isOpen
      ? [note(`${path}: other users may read the data (${(mode & 0o777).toString(8)})`, `chmod go-rwx ${path}`)]
      : [];
  });
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The nearest folder that exists: the server makes the others. */
function existingFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existingFolder(dirname(folder));
}

function checkSpace({ store }: Settings): Finding[] {
  const data = storeFile(store);
  if (data === undefined) return [];
  const folder = existingFolder(dirname(data));
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const text = `${Math.round(free / megabyte)} MB are free in ${folder}`;
  if (free < leastSpace) return [problem(text, 'make room: without it, no run can be stored')];
  return [free < littleSpace ? note(text, 'lower runTtl, or make room') : ok(text)];
}

/** Milliseconds that the identity provider has to answer. */
const timeout = 3_000;

/** Whether callers can be authenticated: keys that are readable and not expired, a provider that answers. */
export async function checkAuth(settings: Settings): Promise<Finding[]> {
  const auth = authOptions(settings);
  if (auth === undefined) return [checkAccess(settings)];
  if (auth.keyFile !== undefined && !existsSync(auth.keyFile)) {
    return [problem(`${auth.keyFile}: there is no such file`, makeKeyFile(auth.keyFile))];
  }
  const findings: Finding[] = [];
  const records = [...(auth.keys ?? [])];
  if (auth.keyFile !== undefined) records.push(...parseKeyFile(await readFile(auth.keyFile, 'utf8')));
  if (auth.keyFile !== undefined || auth.keys !== undefined) findings.push(...checkKeys(records));
  if (auth.jwt !== undefined) findings.push(await checkProvider(auth.jwt.jwks));
  return findings;
}

function checkAccess(settings: Settings): Finding {
  const access = openAccess(settings);
  if (access === undefined) {
    return ok('no authentication; only this computer reaches the server');
  }
  // With --no-auth, the operator has said that a proxy authenticates.
  if (!settings.auth.required) return note(access);
  return problem(access, 'give --keys FILE, or --no-auth where a proxy in front authenticates');
}

function checkKeys(records: readonly KeyRecord[]): Finding[] {
  const now = new Date().toISOString();
  const expired = records.filter(({ expires_at }) => expires_at !== undefined && expires_at < now);
  if (records.length === expired.length) {
    return [problem('no API key is valid', 'make one with: rivulet keys new --principal NAME')];
  }
  const names = expired.map(({ id }) => id).join(', ');
  return [
    ok(`${records.length - expired.length} API keys`),
    ...(expired.length > 0 ? [note(`expired: ${names}`, 'remove them')] : []),
  ];
}

async function checkProvider(jwks: string): Promise<Finding> {
  try {
    const text = /^https?:/.test(jwks) ? await textOf(jwks) : await readFile(jwks, 'utf8');
    parseKeySet(text);
    return ok(`public keys of the token issuer: ${jwks}`);
  } catch (error) {
    const why = messageOf(error);
    return problem(`the public keys ${jwks} cannot be read: ${why}`, 'until they can, tokens are answered with 503');
  }
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeout) });
  if (!response.ok) throw new Error(`it answers ${response.status}`);
  return response.text();
}
