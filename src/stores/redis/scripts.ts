import type { Redis, Result } from 'ioredis';
import { removeRun, removeSession, sweep } from './clear.ts';
import { take } from './commit-script.ts';
import { list, page } from './read.ts';

type Range = 'ZRANGEBYLEX' | 'ZREVRANGEBYLEX' | 'ZRANGEBYSCORE';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** A letter for each write; see `redis-take.ts`. */
    rivuletTake(
      prefix: string,
      writer: string,
      number: number,
      writes: string,
      ...bodies: readonly string[]
    ): Result<string, Context>;
    /** Batches from an event on: the stream's id and the lines. Ends after `limit` batches or `bytes`. */
    rivuletPage(
      prefix: string,
      run_id: string,
      from: number,
      limit: number,
      bytes: number,
    ): Result<[string, string][], Context>;
    /** Where it has stopped, empty at the end; rows and `last` of the runs in a part of a zset. */
    rivuletList(
      prefix: string,
      range: Range,
      name: string,
      from: string,
      to: string,
      limit: number,
      looked: number,
      agent_name: string,
      session_id: string,
      status: string,
    ): Result<[string, [string, string][]], Context>;
    /** 0 where it is not final. */
    rivuletRemove(prefix: string, run_id: string): Result<number, Context>;
    rivuletRemoveSession(prefix: string, session_id: string, limit: number): Result<number, Context>;
    /** How much there was from before these times, in milliseconds. */
    rivuletSweep(
      prefix: string,
      runs: number,
      keys: number,
      sessions: number,
      limit: number,
      sessionLimit: number,
    ): Result<number, Context>;
  }
}

/** Gives a client the commands above. */
export function defineScripts(redis: Redis): void {
  const scripts = {
    rivuletTake: take,
    rivuletPage: page,
    rivuletList: list,
    rivuletRemove: removeRun,
    rivuletRemoveSession: removeSession,
    rivuletSweep: sweep,
  };
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua, numberOfKeys: 1 });
}
