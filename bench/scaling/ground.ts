/** Where nodes are measured: a store that several of them share, and its server. */
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { type Place, postgresPlace, redisPlace } from '../../test/support/servers.ts';
import { Contestant, type Usage } from '../contestant.ts';
import { acp } from '../wires.ts';
import { type Meter, postgresMeter, redisMeter } from './meters.ts';

export interface Ground {
  /** As in the tables. */
  readonly name: string;
  /** Its version, and what its promises rest on. */
  readonly settings: string;
  readonly meter: Meter;
  /** Starts so many nodes, which execute, or only serve. */
  nodes(executing: number, serving?: number, lease?: number): Promise<Nodes>;
  remove(): Promise<void>;
}

/** Those of Redis and PostgreSQL that there are. */
export async function grounds(): Promise<Ground[]> {
  return [...(await redisGround(await redisPlace())), ...(await postgresGround(await postgresPlace()))];
}

async function redisGround(place: Place | undefined): Promise<Ground[]> {
  if (place === undefined) return [];
  const redis = new Redis(place.url);
  const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1];
  const append = (await redis.config('GET', 'append*')) as Record<string, string> | string[];
  const told = Array.isArray(append) ? Object.fromEntries(pairs(append)) : append;
  const settings = `Redis ${version}, appendonly ${told.appendonly}, appendfsync ${told.appendfsync}`;
  const remove = async (): Promise<void> => {
    redis.disconnect();
    await place.remove();
  };
  return [{ name: 'Redis', settings, meter: redisMeter(redis), nodes: starting(place.url), remove }];
}

async function postgresGround(place: Place | undefined): Promise<Ground[]> {
  if (place === undefined) return [];
  const client = new Client(new URL(place.url).href.replace(/\?.*/, ''));
  await client.connect();
  const show = async (name: string): Promise<string> => (await client.query(`SHOW ${name}`)).rows[0]?.[name];
  const [version, commit, sync] = [await show('server_version'), await show('synchronous_commit'), await show('fsync')];
  const settings = `PostgreSQL ${version?.split(' ')[0]}, synchronous_commit ${commit}, fsync ${sync}`;
  const remove = async (): Promise<void> => {
    await client.end();
    await place.remove();
  };
  return [{ name: 'PostgreSQL', settings, meter: await postgresMeter(client), nodes: starting(place.url), remove }];
}

const pairs = (list: readonly string[]): [string, string][] =>
  list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? '']] : []));

const starting =
  (url: string) =>
  (executing: number, serving = 0, lease = 15_000): Promise<Nodes> =>
    Nodes.start(url, executing, serving, lease);

/** Processes with one store. */
export class Nodes {
  readonly executing: readonly Contestant[];
  readonly serving: readonly Contestant[];

  private constructor(executing: readonly Contestant[], serving: readonly Contestant[]) {
    this.executing = executing;
    this.serving = serving;
  }

  static async start(url: string, executing: number, serving: number, lease: number): Promise<Nodes> {
    const start = (role: 'executes' | 'serves'): Promise<Contestant> => {
      const entry = {
        id: role,
        name: `a node that ${role}`,
        file: 'node',
        args: [url, role, String(lease)],
        wire: acp,
      };
      return Contestant.start(entry, { pinned: false });
    };
    const made = (count: number, role: 'executes' | 'serves') =>
      Promise.all(Array.from({ length: count }, () => start(role)));
    return new Nodes(await made(executing, 'executes'), await made(serving, 'serves'));
  }

  get all(): readonly Contestant[] {
    return [...this.executing, ...this.serving];
  }

  /** What all of them have used, together. */
  async usage(): Promise<Required<Usage>> {
    const sum = { cpu: 0, memory: 0, commits: 0 };
    for (const node of this.all) {
      const { cpu, memory, commits = 0 } = await node.usage();
      sum.cpu += cpu;
      sum.memory += memory;
      sum.commits += commits;
    }
    return sum;
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((node) => node.stop()));
  }
}
