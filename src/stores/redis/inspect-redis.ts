import { Redis } from 'ioredis';
import { clockAhead, type Inspection } from '../inspection.ts';
import { durabilityWarnings, layout } from './layout.ts';

/** Reads the version of what a prefix has, the clock and the settings of Redis. */
export async function inspectRedis(url: string, prefix: string): Promise<Inspection> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 3_000,
    commandTimeout: 3_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // `connect` rejects with the error as well.
  let failure: unknown;
  redis.on('error', (error: unknown) => {
    failure ??= error;
  });
  try {
    await redis.connect();
    // It also resolves where Redis has refused to select the database.
    if (failure !== undefined) throw failure;
    const version = await redis.get(`{${prefix}}:version`);
    const before = Date.now();
    const [seconds, microseconds] = await redis.time();
    const ahead = clockAhead(before, Number(seconds) * 1_000 + Number(microseconds) / 1_000, Date.now());
    const warnings = await durabilityWarnings(redis);
    return { version: version === null ? undefined : Number(version), known: layout, clockAhead: ahead, warnings };
  } catch (error) {
    throw failure ?? error;
  } finally {
    redis.disconnect();
  }
}
