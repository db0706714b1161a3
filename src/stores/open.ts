import type { Store } from '../core/ports/store.ts';
import type { Inspection } from './inspection.ts';
import { readStoreUrl, reasonOf, type StoreUrl, storeForms } from './store-url.ts';

/**
 * Opens the store that a URL names, and imports only that store's code:
 * `memory:`; `sqlite:PATH` (a relative path is relative to here);
 * `redis://USER:PASSWORD@HOST:PORT/NUMBER?prefix=rivulet`, with `rediss://` for TLS;
 * `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT?prefix=rivulet`, by any of its nodes, with `rediss+cluster://` for TLS;
 * `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=rivulet`.
 * `warn` is called for settings of the server that may lose acknowledged commits.
 * @throws Error that says what is wrong with the URL, or why the store cannot be opened
 */
export async function openStore(text: string, warn?: (text: string) => void): Promise<Store> {
  const found = await findStore(text);
  switch (found.kind) {
    case 'memory': {
      const { MemoryStore } = await import('./memory/memory-store.ts');
      return new MemoryStore();
    }
    case 'sqlite': {
      const { SqliteStore } = await import('./sqlite/sqlite-store.ts');
      return withReason(text, async () => new SqliteStore(found.path));
    }
    case 'redis': {
      const { RedisStore } = await import('./redis/redis-store.ts');
      return withReason(text, () => RedisStore.open(found.url, found.prefix, warn));
    }
    case 'redis-cluster': {
      const { RedisClusterStore } = await import('./redis/cluster-store.ts');
      return withReason(text, () => RedisClusterStore.open(found.address, found.prefix, warn));
    }
    case 'postgres': {
      const { PostgresStore } = await import('./postgres/postgres-store.ts');
      return withReason(text, () => PostgresStore.open(found.url, found.schema));
    }
  }
}

/** Looks at the store that a URL names. @throws Error where it cannot be reached, or the URL is wrong */
export async function inspectStore(text: string): Promise<Inspection> {
  const found = await findStore(text);
  switch (found.kind) {
    case 'memory':
      return { version: undefined, known: 0 };
    case 'sqlite': {
      const { inspectFile } = await import('./sqlite/inspect-file.ts');
      return withReason(text, async () => inspectFile(found.path));
    }
    case 'redis': {
      const { inspectRedis } = await import('./redis/inspect-redis.ts');
      return withReason(text, () => inspectRedis(found.url, found.prefix));
    }
    case 'redis-cluster': {
      const { inspectCluster } = await import('./redis/inspect-redis.ts');
      return withReason(text, () => inspectCluster(found.address, found.prefix));
    }
    case 'postgres': {
      const { inspectPostgres } = await import('./postgres/inspect-postgres.ts');
      return withReason(text, () => inspectPostgres(found.url, found.schema));
    }
  }
}

/** The parsed URL of a store. @throws Error that says what is wrong with it */
async function findStore(text: string): Promise<StoreUrl> {
  const found = await withReason(text, async () => readStoreUrl(text));
  if (found === undefined) throw unknownStore(storeName(text));
  return found;
}

/** The URL of a store without its passwords, for messages. */
export function storeName(url: string): string {
  return url
    .replace(/^([a-z+]+:\/\/[^:@]*):.*@/s, '$1:***@')
    .replace(/([?&][^=&#]*(?:pass|secret|token)[^=&#]*=)[^&#]*/gi, '$1***');
}

export const unknownStore = (name: string): Error => new Error(`there is no store "${name}"; use ${storeForms}`);

/** Runs `open`, and says of its error which store it is about. */
async function withReason<T>(text: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new Error(`the store ${storeName(text)} cannot be opened: ${reasonOf(error)}`, { cause: error });
  }
}
