import type { Inspection } from './inspection.ts';
import { storeName, unknownStore, withReason } from './open.ts';
import { readStoreUrl } from './store-url.ts';

/** Looks at the store that a URL names. @throws Error where it cannot be reached, or the URL is wrong */
export async function inspectStore(text: string): Promise<Inspection> {
  const found = await withReason(text, async () => readStoreUrl(text));
  switch (found?.kind) {
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
    default:
      throw unknownStore(storeName(text));
  }
}
