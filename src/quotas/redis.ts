import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Quotas } from '../core/ports/quotas.ts';
import { SharedCounters } from './shared-counters.ts';

/** Counters in Redis, beside the store's keys; each expires with its window. */
export function redisQuotas(url: string, prefix: string, onError: (error: unknown) => void): Quotas {
  const redis = new Redis(url, {
    connectionName: 'rivulet-quotas',
    lazyConnect: true,
    connectTimeout: 3_000,
    commandTimeout: 1_000,
    maxRetriesPerRequest: 1,
  });
  redis.on('error', onError);
  return new SharedCounters(
    ({ name, points, window }, fallback) =>
      new RateLimiterRedis({
        storeClient: redis,
        // The store's hash tag: a cluster keeps all keys in one slot.
        keyPrefix: `{${prefix}}:quota:${name}`,
        points,
        duration: window,
        insuranceLimiter: fallback,
        // One that is exhausted costs no round trips until its window ends.
        inMemoryBlockOnConsumed: points + 1,
      }),
    async () => redis.disconnect(),
  );
}
