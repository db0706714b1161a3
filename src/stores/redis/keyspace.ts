import type { RedisClient } from './connection.ts';
import { type ScriptKeys, scriptKeys } from './script.ts';

/** The keys of a store that begin with its prefix, and the client that reads and writes them. */
export class Keyspace {
  protected readonly redis: RedisClient;
  protected readonly prefix: string;
  /** The keys of scripts. */
  protected readonly keys: ScriptKeys;

  constructor(redis: RedisClient, prefix: string) {
    this.redis = redis;
    this.prefix = prefix;
    this.keys = scriptKeys(prefix);
  }

  /** A key by its name in the layout. */
  protected keyOf(...name: readonly string[]): string {
    return this.prefix + name.join(':');
  }
}
