import type { Quotas } from '../core/ports/quotas.ts';
import { readStoreUrl } from '../stores/store-url.ts';
import { OwnCounters } from './own-counters.ts';

/**
 * Opens the counters that belong to the store of a URL: in the same Redis, cluster or PostgreSQL, or else in this process. They
 * connect when something is first counted. `onError` is told of errors of their connections.
 * @throws Error that says what is wrong with the URL
 */
export async function openQuotas(text: string, onError: (error: unknown) => void): Promise<Quotas> {
  const found = readStoreUrl(text);
  switch (found?.kind) {
    case undefined:
    case 'memory':
    case 'sqlite':
      return new OwnCounters();
    case 'redis': {
      const { redisQuotas } = await import('./redis.ts');
      return redisQuotas(found.url, found.prefix, onError);
    }
    case 'redis-cluster': {
      const { clusterQuotas } = await import('./redis.ts');
      return clusterQuotas(found.address, found.prefix, onError);
    }
    case 'postgres': {
      const { postgresQuotas } = await import('./postgres.ts');
      return postgresQuotas(found.url, found.schema, onError);
    }
  }
}
