import { Redis, type RedisOptions } from 'ioredis';
import { clockAhead, type Inspection } from '../inspection.ts';
import type { ClusterAddress } from '../store-url.ts';
import { clusterPrefixes } from './cluster-prefixes.ts';
import { clusterClient, connected, primariesOf, type RedisClient } from './connection.ts';
import { durabilityWarnings, layout } from './layout.ts';

const options = {
  lazyConnect: true,
  connectTimeout: 3_000,
  commandTimeout: 3_000,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
} satisfies RedisOptions;

/** Reads the version of what a prefix has, the clock and the settings of Redis. */
export const inspectRedis = (url: string, prefix: string): Promise<Inspection> =>
  inspect(new Redis(url, options), prefix);

/** The same of a cluster: the version of a store's first part, and the clock that differs most from this process's. */
export const inspectCluster = (address: ClusterAddress, prefix: string): Promise<Inspection> =>
  inspect(clusterClient(address, options, { clusterRetryStrategy: () => null }), clusterPrefixes(prefix)[0] ?? prefix);

async function inspect(client: RedisClient, prefix: string): Promise<Inspection> {
  await connected(client);
  try {
    const version = await client.get(`{${prefix}}:version`);
    const clocks = await Promise.all(
      primariesOf(client).map(async (redis) => {
        const before = Date.now();
        const [seconds, microseconds] = await redis.time();
        return clockAhead(before, Number(seconds) * 1_000 + Number(microseconds) / 1_000, Date.now());
      }),
    );
    const [farthest = 0] = clocks.sort((a, b) => Math.abs(b) - Math.abs(a));
    const warnings = await durabilityWarnings(client);
    return { version: version === null ? undefined : Number(version), known: layout, clockAhead: farthest, warnings };
  } finally {
    client.disconnect();
  }
}
