/** The CPU time of a store's server. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { Client } from 'pg';

/** Microseconds of CPU time so far; NaN where the server is on another machine. */
export type Meter = () => Promise<number>;

/** Without that of child processes, which write snapshots. */
export const redisMeter =
  (redis: Redis): Meter =>
  async () => {
    const info = await redis.info('cpu');
    const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
    return 1e6 * (seconds('used_cpu_sys') + seconds('used_cpu_user'));
  };

/** The CPU time of all its processes: one for each connection, and those in the background. */
export async function postgresMeter(client: Client): Promise<Meter> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const own = statOf(rows[0]?.pid ?? 0);
  const main = own?.parent;
  return async () => {
    if (main === undefined) return Number.NaN;
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const family = pids.flatMap((pid) => statOf(Number(pid)) ?? []).filter(({ parent }) => parent === main);
    // The parent's account includes processes that have ended.
    const { cpu = 0, ended = 0 } = statOf(main) ?? {};
    return family.reduce((sum, one) => sum + one.cpu, cpu + ended);
  };
}

interface Stat {
  readonly parent: number;
  /** Microseconds of CPU time: its own, and that of its ended children. */
  readonly cpu: number;
  readonly ended: number;
}

/** The entry of a process in /proc, where it is one of PostgreSQL. */
function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    if (!/\(postgres/.test(text)) return undefined;
    // The name in parentheses may contain spaces.
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
