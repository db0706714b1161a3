import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { steadyPort } from './ports.ts';

/** Where a file of tests keeps things in a real server, beside whatever else is there. */
export interface Place {
  /** For `openStore`, and for a client of the server's own. */
  readonly url: string;
  /** The prefix or schema that nobody else uses. */
  readonly name: string;
  /** Takes away what was kept, and ends the server if it was started for this. */
  remove(): Promise<void>;
}

/** A server that a test has started, in a folder of its own. */
export interface Started {
  readonly url: string;
  readonly port: number;
  /** Ends it, and takes its data away. */
  stop(): Promise<void>;
  /** Ends it in good order, or as a crash would; its data stays. */
  halt(): Promise<void>;
  kill(): Promise<void>;
  /** Starts it again at the same place, with its data; kills it first where it runs. */
  restart(): Promise<void>;
}

/** How a server is started. */
interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly options?: SpawnOptions;
  /** What it says when it is ready. */
  readonly ready: RegExp;
  /** What makes it end at once. */
  readonly crash: NodeJS.Signals;
}

/** That of REDIS_URL, else the one on the usual port, else one of this place's own; undefined where there is none. */
export async function redisPlace(): Promise<Place | undefined> {
  const given = process.env.REDIS_URL;
  const there = given ?? ((await answers(askRedis, 'redis://127.0.0.1:6379')) ? 'redis://127.0.0.1:6379' : undefined);
  const started = there === undefined ? await startRedis() : undefined;
  const server = there ?? started?.url;
  if (server === undefined) return missing('Redis', 'REDIS_URL');
  const name = `rivulet-test-${randomBytes(6).toString('hex')}`;
  const url = withParameter(server, 'prefix', name);
  const remove = async (): Promise<void> => {
    const redis = new Redis(server);
    for await (const names of redis.scanStream({ match: `{${name}}*`, count: 1000 })) {
      if (names.length > 0) await redis.unlink(names);
    }
    await redis.quit();
    await started?.stop();
  };
  return { url, name, remove };
}

/** That of DATABASE_URL, else the one on the usual port, else one of this place's own; undefined where there is none. */
export async function postgresPlace(): Promise<Place | undefined> {
  const given = process.env.DATABASE_URL;
  const usual = 'postgres://postgres@127.0.0.1:5432/test';
  const there = given ?? ((await answers(askPostgres, usual)) ? usual : undefined);
  const started = there === undefined ? await startPostgres() : undefined;
  const server = there ?? started?.url;
  if (server === undefined) return missing('PostgreSQL', 'DATABASE_URL');
  const name = `rivulet_test_${randomBytes(6).toString('hex')}`;
  const remove = async (): Promise<void> => {
    const client = new Client(server);
    await client.connect();
    await client.query('SET client_min_messages = warning');
    await client.query(`DROP SCHEMA IF EXISTS ${name}, ${name}_queue CASCADE`);
    await client.end();
    await started?.stop();
  };
  return { url: withParameter(server, 'schema', name), name, remove };
}

/**
 * A Redis of the test's own, on a free port; undefined where there is none to start.
 * Where it is durable, it keeps every commit that it has answered; else a restart finds nothing.
 */
export async function startRedis({ durable = false } = {}): Promise<Started | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-redis-'));
  const port = await steadyPort();
  const log = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder, ...log];
  const ready = /Ready to accept connections/;
  const started = await start({ file: 'redis-server', args, folder, ready, crash: 'SIGKILL' });
  return started && { url: `redis://127.0.0.1:${port}`, port, ...started };
}

const debian = '/usr/lib/postgresql';

/** The same with a PostgreSQL; one that is not durable leaves it to the system when it writes to the disk. */
export async function startPostgres({ durable = false } = {}): Promise<Started | undefined> {
  // Debian keeps the versions beside each other, and none of them in the PATH.
  const versions = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : [];
  const bin = [...(process.env.PATH ?? '').split(':'), ...versions].find((one) => existsSync(join(one, 'initdb')));
  if (bin === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-postgres-'));
  // It refuses to run as root, so it runs as nobody.
  const who = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if (who.uid !== undefined) chownSync(folder, who.uid, who.gid);
  const data = join(folder, 'data');
  const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale', 'C', '--no-sync'];
  execFileSync(join(bin, 'initdb'), options, { ...who, cwd: folder, stdio: 'pipe' });
  const port = await steadyPort();
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, ...(durable ? [] : ['-F'])];
  const ready = /ready to accept connections/;
  // Killed, it would leave its children behind.
  const started = await start({ file: join(bin, 'postgres'), args, folder, options: who, ready, crash: 'SIGQUIT' });
  return started && { url: `postgres://postgres@127.0.0.1:${port}/postgres`, port, ...started };
}

/** Starts a server and waits until it says that it is ready; undefined where it is not there. */
async function start(command: Command): Promise<Omit<Started, 'url' | 'port'> | undefined> {
  const { file, args, folder, options, ready, crash } = command;
  const spawned = (): ChildProcess => spawn(file, args, { ...options, cwd: folder });
  let child = spawned();
  const atExit = (): boolean => child.kill(crash);
  process.once('exit', atExit);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await once(child, 'exit');
  };
  const stop = async (): Promise<void> => {
    process.off('exit', atExit);
    await end('SIGINT');
    rmSync(folder, { recursive: true, force: true });
  };
  const halt = (): Promise<void> => end('SIGINT');
  const kill = (): Promise<void> => end(crash);
  const restart = async (): Promise<void> => {
    await kill();
    child = spawned();
    if (!(await says(child, ready))) throw new Error(`${file} does not start again`);
  };
  if (await says(child, ready)) return { stop, halt, kill, restart };
  await stop();
  return undefined;
}

function says(child: ChildProcess, ready: RegExp): Promise<boolean> {
  return new Promise((resolve) => {
    let text = '';
    const read = (chunk: Buffer): void => {
      text += chunk;
      if (ready.test(text)) resolve(true);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', () => resolve(false));
    child.once('exit', () => resolve(false));
  });
}

const answers = (ask: (url: string) => Promise<void>, url: string): Promise<boolean> =>
  ask(url).then(
    () => true,
    () => false,
  );

async function askRedis(url: string): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null });
  redis.on('error', () => {});
  await redis.connect();
  await redis.quit();
}

async function askPostgres(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  await client.connect();
  await client.end();
}

function withParameter(server: string, name: string, value: string): string {
  const url = new URL(server);
  url.searchParams.set(name, value);
  return url.href;
}

function missing(what: string, variable: string): undefined {
  const why = `there is no ${what}: none on its usual port, and none to start; set ${variable} or install it`;
  if (process.env.CI === 'true') throw new Error(why);
  console.warn(`\nSKIPPED: tests of ${what}, because ${why}\n`);
}
