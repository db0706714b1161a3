import { escapeIdentifier } from 'pg';
import { errorOf } from '../../core/errors.ts';
import { withClient } from '../../postgres/connections.ts';
import { clockAhead, type Inspection } from '../inspection.ts';
import { checkNotifications } from './check-notifications.ts';
import { schemaVersion } from './schema.ts';

/** Reads the version of a schema, the clock and the settings of PostgreSQL. */
export async function inspectPostgres(url: string, schema: string): Promise<Inspection> {
  const config = { connectionString: url, connectionTimeoutMillis: 3_000, query_timeout: 3_000 };
  return withClient(config, async (client) => {
    const name = `${escapeIdentifier(schema)}.version`;
    const { rows: tables } = await client.query<{ found: string | null }>('SELECT to_regclass($1) AS found', [name]);
    const exists = tables[0]?.found != null;
    const versions = exists ? await client.query<{ version: number }>(`SELECT version FROM ${name}`) : { rows: [] };
    const before = Date.now();
    const { rows } = await client.query<{ ms: string; synchronous: string }>(
      `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms, current_setting('synchronous_commit') AS synchronous`,
    );
    const ahead = clockAhead(before, Number(rows[0]?.ms), Date.now());
    const loses = rows[0]?.synchronous === 'off';
    const warnings = loses
      ? ['PostgreSQL commits later than it says (synchronous_commit off): a crash loses some']
      : [];
    await checkNotifications(config).catch((error: unknown) => warnings.push(errorOf(error).message));
    return { version: versions.rows[0]?.version, known: schemaVersion, clockAhead: ahead, warnings };
  });
}
