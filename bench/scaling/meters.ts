/** The processor time of a store's server. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { Client } from 'pg';

/** Microseconds of processor time so far; NaN where the server is on another machine. */
export type Meter = () => Promise<number>;

/** Without that of children, which write the file of a snapshot. */
export const redisMeter =
  (redis: Redis): Meter =>
  async () => {
    const told = await redis.info('cpu');
    const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(told)?.[1]);
    return 1e6 * (seconds('used_cpu_sys') + seconds('used_cpu_user'));
  };

/** Of all its processes: each connection is one, and writers and the log have theirs. */
export async function postgresMeter(client: Client): Promise<Meter> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const own = statOf(rows[0]?.pid ?? 0);
  const main = own?.parent;
  return async () => {
    if (main === undefined) return Number.NaN;
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const family = pids.flatMap((pid) => statOf(Number(pid)) ?? []).filter(({ parent }) => parent === main);
    // Those that have ended are in their parent's account.
    const { cpu = 0, ended = 0 } = statOf(main) ?? {};
    return family.reduce((sum, one) => sum + one.cpu, cpu + ended);
  };
}

interface Stat {
  readonly parent: number;
  /** Microseconds: its own, and that of its children that have ended. */
  readonly cpu: number;
  readonly ended: number;
}

/** What Linux knows of a process of that id, where there is a PostgreSQL under it. */
function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    if (!/\(postgres/.test(text)) return undefined;
    // The name in brackets may have spaces in it.
    const fields = text
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const ticks = (a: number, b: number): number => 10_000 * ((fields[a] ?? 0) + (fields[b] ?? 0));
    return { parent: fields[1] ?? 0, cpu: ticks(11, 12), ended: ticks(13, 14) };
  } catch {
    return undefined;
  }
}
