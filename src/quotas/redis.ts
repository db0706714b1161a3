import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { Quotas } from '../core/ports/quotas.ts';
import { clusterClient, type RedisClient } from '../stores/redis/connection.ts';
import type { ClusterAddress } from '../stores/store-url.ts';
import { SharedCounters } from './shared-counters.ts';

const options = {
  connectionName: 'rivulet-quotas',
  lazyConnect: true,
  connectTimeout: 3_000,
  commandTimeout: 1_000,
  maxRetriesPerRequest: 1,
};

/** Counters in Redis, beside the store's keys; each expires with its window. */
export const redisQuotas = (url: string, prefix: string, onError: (error: unknown) => void): Quotas =>
  // The store's hash tag.
  quotasOf(new Redis(url, options), `{${prefix}}:`, onError);

/** The same in a cluster, whose primaries share the owners. */
export const clusterQuotas = (address: ClusterAddress, prefix: string, onError: (error: unknown) => void): Quotas =>
  quotasOf(clusterClient(address, options), `${prefix}:`, onError);

function quotasOf(redis: RedisClient, prefix: string, onError: (error: unknown) => void): Quotas {
  redis.on('error', onError);
  return new SharedCounters(
    ({ name, points, window }, fallback) =>
      new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: `${prefix}quota:${name}`,
        points,
        duration: window,
        insuranceLimiter: fallback,
        // One that is exhausted costs no round trips until its window ends.
        inMemoryBlockOnConsumed: points + 1,
      }),
    async () => redis.disconnect(),
  );
}
