import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';

/** Where a file of tests keeps things in a real server, beside whatever else is there. */
export interface Place {
  /** For `openStore`, and for a client of the server's own. */
  readonly url: string;
  /** The prefix or schema that nobody else uses. */
  readonly name: string;
  /** Takes away what was kept, and ends the server if it was started for this. */
  remove(): Promise<void>;
}

/** A server that a test has started. */
export interface Started {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
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

/** A Redis of the test's own, on a free port or a given one; undefined where there is none to start. */
export async function startRedis(port?: number): Promise<Started | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-redis-'));
  const at = port ?? (await freePort());
  const options = ['--port', String(at), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const started = await start('redis-server', options, folder, {}, /Ready to accept connections/);
  return started && { url: `redis://127.0.0.1:${at}`, port: at, stop: started };
}

const debian = '/usr/lib/postgresql';

async function startPostgres(): Promise<Started | undefined> {
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
  const port = await freePort();
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, '-F'];
  const stop = await start(join(bin, 'postgres'), args, folder, who, /ready to accept connections/);
  return stop && { url: `postgres://postgres@127.0.0.1:${port}/postgres`, port, stop };
}

/** Starts a server and waits until it says that it is ready. Answers how to stop it; undefined where it is not there. */
async function start(
  command: string,
  args: readonly string[],
  folder: string,
  options: SpawnOptions,
  ready: RegExp,
): Promise<(() => Promise<void>) | undefined> {
  const child = spawn(command, args, { ...options, cwd: folder });
  const end = (): boolean => child.kill('SIGINT');
  process.once('exit', end);
  const stop = async (): Promise<void> => {
    process.off('exit', end);
    if (child.exitCode === null && child.signalCode === null && end()) await once(child, 'exit');
    rmSync(folder, { recursive: true, force: true });
  };
  if (await says(child, ready)) return stop;
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
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
