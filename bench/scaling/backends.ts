/** The stores that nodes share in a measurement, and their servers. */
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { type Place, postgresPlace, redisPlace } from '../../test/support/servers.ts';
import { Contestant, type Usage } from '../contestant.ts';
import { acp } from '../wires.ts';
import { type Meter, postgresMeter, redisMeter } from './meters.ts';

export interface Backend {
  /** For the tables. */
  readonly name: string;
  /** Its version, and the settings that decide about durability. */
  readonly settings: string;
  readonly meter: Meter;
  /** Starts nodes that execute runs, and nodes that only serve requests. */
  nodes(executing: number, serving?: number): Promise<Nodes>;
  /** Starts another server on the same database; undefined where there is none for it. */
  peer?(): Promise<{ readonly name: string; readonly nodes: Nodes }>;
  remove(): Promise<void>;
}

/** Redis and PostgreSQL, where they are available. */
export async function backends(): Promise<Backend[]> {
  return [...(await redisBackend(await redisPlace())), ...(await postgresBackend(await postgresPlace()))];
}

async function redisBackend(place: Place | undefined): Promise<Backend[]> {
  if (place === undefined) return [];
  const redis = new Redis(place.url);
  const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1];
  const append = (await redis.config('GET', 'append*')) as Record<string, string> | string[];
  const settingsOf = Array.isArray(append) ? Object.fromEntries(pairs(append)) : append;
  const settings = `Redis ${version}, appendonly ${settingsOf.appendonly}, appendfsync ${settingsOf.appendfsync}`;
  const remove = async (): Promise<void> => {
    redis.disconnect();
    await place.remove();
  };
  return [{ name: 'Redis', settings, meter: redisMeter(redis), nodes: starting(place.url), remove }];
}

async function postgresBackend(place: Place | undefined): Promise<Backend[]> {
  if (place === undefined) return [];
  const client = new Client(new URL(place.url).href.replace(/\?.*/, ''));
  const peer = new URL(place.url);
  peer.pathname = `/${place.name}_dbos`;
  peer.search = '';
  await client.connect();
  const show = async (name: string): Promise<string> => (await client.query(`SHOW ${name}`)).rows[0]?.[name];
  const [version, commit, sync] = [await show('server_version'), await show('synchronous_commit'), await show('fsync')];
  const settings = `PostgreSQL ${version?.split(' ')[0]}, synchronous_commit ${commit}, fsync ${sync}`;
  const remove = async (): Promise<void> => {
    await client.query(`DROP DATABASE IF EXISTS ${peer.pathname.slice(1)} WITH (FORCE)`);
    await client.end();
    await place.remove();
  };
  const nodes = starting(place.url);
  return [
    {
      name: 'PostgreSQL',
      settings,
      meter: await postgresMeter(client),
      nodes,
      peer: async () => ({ name: 'DBOS', nodes: await Nodes.dbos(peer.href) }),
      remove,
    },
  ];
}

const pairs = (list: readonly string[]): [string, string][] =>
  list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : []));

const starting =
  (url: string) =>
  (executing: number, serving = 0): Promise<Nodes> =>
    Nodes.start(url, executing, serving);

/** Nodes that share a store. */
export class Nodes {
  readonly executing: readonly Contestant[];
  readonly serving: readonly Contestant[];

  private constructor(executing: readonly Contestant[], serving: readonly Contestant[]) {
    this.executing = executing;
    this.serving = serving;
  }

  static async start(url: string, executing: number, serving: number): Promise<Nodes> {
    const start = (role: 'executes' | 'serves'): Promise<Contestant> => {
      const entry = { id: role, name: `a node that ${role}`, file: 'node', args: [url, role], wire: acp };
      return Contestant.start(entry, { pinned: false });
    };
    const startAll = (count: number, role: 'executes' | 'serves') =>
      Promise.all(Array.from({ length: count }, () => start(role)));
    return new Nodes(await startAll(executing, 'executes'), await startAll(serving, 'serves'));
  }

  /** DBOS in one process, which keeps its tables in `database`. */
  static async dbos(database: string): Promise<Nodes> {
    const entry = { id: 'dbos', name: 'DBOS', file: 'peers/dbos', args: [database], wire: acp };
    return new Nodes([await Contestant.start(entry, { pinned: false })], []);
  }

  get all(): readonly Contestant[] {
    return [...this.executing, ...this.serving];
  }

  /** The sum of their usage. */
  async usage(): Promise<Required<Usage>> {
    const sum = { cpu: 0, memory: 0, heap: 0, commits: 0 };
    for (const node of this.all) {
      const { cpu, memory, heap, commits = 0 } = await node.usage();
      sum.cpu += cpu;
      sum.memory += memory;
      sum.heap += heap;
      sum.commits += commits;
    }
    return sum;
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((node) => node.stop()));
  }
}
