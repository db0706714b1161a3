import { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Quotas } from '../core/ports/quotas.ts';
import { openPool } from '../postgres/connections.ts';
import { SharedCounters } from './shared-counters.ts';

/** Counters in a table of the store's schema; rows are removed an hour after their window has ended. */
export function postgresQuotas(url: string, schema: string, onError: (error: unknown) => void): Quotas {
  const config = {
    connectionString: url,
    application_name: 'rivulet-quotas',
    max: 2,
    connectionTimeoutMillis: 3_000,
    query_timeout: 1_000,
    // A crash may lose the last counts.
    options: '-c synchronous_commit=off',
  };
  const pool = openPool(config, onError);
  return new SharedCounters(
    ({ name, points, window }, fallback, onUnusable) =>
      new RateLimiterPostgres(
        {
          storeClient: pool,
          storeType: 'pool',
          schemaName: schema,
          tableName: 'quotas',
          keyPrefix: name,
          points,
          duration: window,
          insuranceLimiter: fallback,
          inMemoryBlockOnConsumed: points + 1,
        },
        // It makes its table once, and counts for itself where that fails: while the database is away, or while another
        // node makes the table at the same moment.
        (error) => {
          if (error === undefined) return;
          onUnusable();
          onError(error);
        },
      ),
    () => pool.end(),
  );
}
