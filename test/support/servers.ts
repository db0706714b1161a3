import { type ChildProcess, execFile, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { steadyPort } from './ports.ts';

/** The part of a real server that one test file uses. */
export interface Place {
  /** For `openStore`, and for the server's own client. */
  readonly url: string;
  /** The prefix or schema of this test file alone. */
  readonly name: string;
  /** Removes the data, and stops the server if it was started for this file. */
  remove(): Promise<void>;
}

/** A server that a test has started, with a folder of its own. */
export interface Started {
  readonly url: string;
  readonly port: number;
  /** Stops the server, and removes its data. */
  stop(): Promise<void>;
  /** Stops the server, cleanly or like a crash; its data stays. */
  halt(): Promise<void>;
  kill(): Promise<void>;
  /** Restarts the server with its data and its port; kills it first if it runs. */
  restart(): Promise<void>;
}

/** The command of a server. */
interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly options?: SpawnOptions;
  /** The text that it prints when it is ready. */
  readonly ready: RegExp;
  /** The signal that ends it at once. */
  readonly crash: NodeJS.Signals;
}

/** The Redis of REDIS_URL, or of the usual port, or a new one; undefined without any. */
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

/** The PostgreSQL of DATABASE_URL, or of the usual port, or a new one; undefined without any. */
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
 * Starts a Redis of the test's own, on a free port; undefined if Redis is not installed. If it is durable, it keeps
 * every commit that it has acknowledged; otherwise it loses its data at a restart.
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

/**
 * Starts a Redis Cluster with three primaries, and a replica for each if wanted; undefined if Redis is not installed. A
 * primary that does not answer for five seconds is replaced by its replica. A loaded machine must not look like a dead one.
 */
export async function startRedisCluster({ replicas = 0 } = {}): Promise<RedisCluster | undefined> {
  const started = await Promise.all(Array.from({ length: 3 * (1 + replicas) }, startClusterNode));
  const nodes = started.filter((node) => node !== undefined);
  if (nodes.length === 0) return missing('Redis', 'REDIS_URL');
  const cluster = new RedisCluster(nodes);
  await cluster.manage('create', ...nodes.map(addressOf), '--cluster-replicas', String(replicas), '--cluster-yes');
  await cluster.untilWhole();
  return cluster;
}

const addressOf = ({ port }: Started): string => `127.0.0.1:${port}`;

/** A node of a cluster that has slots. */
export interface Primary extends Started {
  readonly id: string;
  /** How many it has. */
  readonly slots: number;
}

/** The slots of a range such as `0-5460` or `7`; none for a slot that is just moving. */
const sizeOf = (range: string): number => {
  const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
  return first === undefined ? 0 : Number(last) - Number(first) + 1;
};

/** A Redis Cluster of a test's own. */
export class RedisCluster {
  readonly nodes: readonly Started[];
  /** By any of its nodes. */
  readonly url: string;

  constructor(nodes: readonly Started[]) {
    this.nodes = nodes;
    this.url = `redis+cluster://${nodes.map(addressOf).join(',')}`;
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  /** Runs `redis-cli --cluster` with these words. */
  async manage(...words: readonly string[]): Promise<void> {
    await promisify(execFile)('redis-cli', ['--cluster', ...words]);
  }

  /** The nodes that have slots now, those with the most of them first. */
  async primaries(): Promise<Primary[]> {
    const lines = await this.#known();
    const found = this.nodes.flatMap((node) => {
      const line = lines.find((one) => one.includes(`${addressOf(node)}@`)) ?? '';
      const [id = '', , flags = '', , , , , , ...ranges] = line.split(' ');
      const slots = ranges.reduce((sum, range) => sum + sizeOf(range), 0);
      return /\bmaster\b/.test(flags) && !flags.includes('fail') && slots > 0 ? [{ ...node, id, slots }] : [];
    });
    return found.sort((a, b) => b.slots - a.slots);
  }

  /** Resolves when the replica of a primary has all that the primary has. */
  async untilReplicated({ url }: Primary): Promise<void> {
    const redis = new Redis(url);
    for (;;) {
      const text = await redis.info('replication');
      const [own, replica] = [/master_repl_offset:(\d+)/.exec(text)?.[1], /slave0:.*offset=(\d+)/.exec(text)?.[1]];
      if (own === replica) break;
      await setTimeout(20);
    }
    await redis.quit();
  }

  /** Kills a primary, waits until its replica has taken over, and starts it again, as a replica. */
  async failOver({ id, kill, restart }: Primary, die = kill): Promise<void> {
    await die();
    for (;;) {
      const primaries = await this.primaries();
      if (primaries.length === 3 && primaries.every((one) => one.id !== id)) break;
      await setTimeout(50);
    }
    await restart();
    await this.untilWhole();
    while (!(await this.#known()).some((line) => line.startsWith(`${id} `) && /\bslave\b/.test(line)))
      await setTimeout(50);
  }

  /** A replica takes over from its living primary, which goes on as a replica: what operators do before an update. */
  async handOver({ id }: Primary): Promise<void> {
    const lines = await this.#known();
    const replica = lines.find((line) => line.split(' ')[3] === id)?.split(' ')[1] ?? '';
    const node = this.nodes.find((one) => replica.startsWith(`${addressOf(one)}@`));
    if (node === undefined) throw new Error(`the primary ${id} has no replica`);
    const redis = new Redis(node.url);
    await redis.cluster('FAILOVER');
    while (!(await redis.info('replication')).includes('role:master')) await setTimeout(20);
    await redis.quit();
    await this.untilWhole();
  }

  /** Moves slots from one primary to another one. */
  async move(from: string, to: string, slots: number): Promise<void> {
    const [first] = await this.primaries();
    if (first === undefined) throw new Error('the cluster has no primaries');
    const words = ['--cluster-from', from, '--cluster-to', to, '--cluster-slots', String(slots), '--cluster-yes'];
    await this.manage('reshard', addressOf(first), ...words);
  }

  /** Resolves when every node says that the cluster serves all slots, and each replica has what its primary has. */
  async untilWhole(): Promise<void> {
    for (const { url } of this.nodes) {
      const redis = new Redis(url);
      while (!(await redis.cluster('INFO')).includes('cluster_state:ok')) await setTimeout(50);
      while ((await redis.info('replication')).includes('master_link_status:down')) await setTimeout(50);
      await redis.quit();
    }
  }

  /** What some node says of all: a line for each. */
  async #known(): Promise<string[]> {
    for (const { url } of this.nodes) {
      const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
      redis.on('error', () => {});
      const text = await redis
        .connect()
        .then(() => redis.cluster('NODES'))
        .catch(() => undefined);
      redis.disconnect();
      if (text !== undefined) return String(text).split('\n');
    }
    throw new Error('no node of the cluster answers');
  }
}

async function startClusterNode(): Promise<Started | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-cluster-'));
  const [port, bus] = [await steadyPort(), await steadyPort()];
  const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '5000'];
  const replication = ['--repl-diskless-sync-delay', '0'];
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--dir',
    folder,
    ...cluster,
    ...replication,
  ];
  const started = await start({
    file: 'redis-server',
    args,
    folder,
    ready: /Ready to accept connections/,
    crash: 'SIGKILL',
  });
  return started && { url: `redis://127.0.0.1:${port}`, port, ...started };
}

const debian = '/usr/lib/postgresql';

/** The same for PostgreSQL. One that is not durable leaves it to the system when data is written to the disk. */
export async function startPostgres({ durable = false } = {}): Promise<Started | undefined> {
  // Debian installs versions side by side, outside of the PATH.
  const versions = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : [];
  const bin = [...(process.env.PATH ?? '').split(':'), ...versions].find((one) => existsSync(join(one, 'initdb')));
  if (bin === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-postgres-'));
  // It refuses to run as root, so root starts it as the unprivileged user 65534.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale', 'C', '--no-sync'];
  execFileSync(join(bin, 'initdb'), options, { ...user, cwd: folder, stdio: 'pipe' });
  const port = await steadyPort();
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, ...(durable ? [] : ['-F'])];
  const ready = /ready to accept connections/;
  // SIGKILL would leave its child processes behind.
  const started = await start({ file: join(bin, 'postgres'), args, folder, options: user, ready, crash: 'SIGQUIT' });
  return started && { url: `postgres://postgres@127.0.0.1:${port}/postgres`, port, ...started };
}

/** Starts a server and waits until it is ready; undefined if it is not installed. */
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
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
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
