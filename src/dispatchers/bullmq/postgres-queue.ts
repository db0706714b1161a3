import { createHash } from 'node:crypto';
import { createPostgresBackend, LATEST_SCHEMA_VERSION, type PostgresConnectionOptions, runMigrations } from 'bullmq';
import { Client, escapeIdentifier } from 'pg';
import { BullDispatcher, type BullOptions } from './bullmq-dispatcher.ts';

/** Connections for taking, renewing and ending; one more waits for something to take, and one offers. */
const takers = 3;

/** The tables of the queue are in a schema of their own, beside the store's; five connections at most. */
export async function openPostgresQueue(address: string, storeSchema: string, options: BullOptions) {
  const schema = queueSchema(storeSchema);
  const url = new URL(address);
  // BullMQ adds its search path to them, and the URL's own would replace that.
  const flags = url.searchParams.get('options');
  url.searchParams.delete('options');
  const common = {
    connectionString: url.href,
    // A crash may take the last jobs with it, or bring them back: the runs are in the store, so no call waits for a disk.
    // Stricter transactions, should they be the server's default, would fail where several processes take jobs.
    options: `${flags ?? ''} -c synchronous_commit=off -c default_transaction_isolation=read\\ committed`.trim(),
    application_name: 'rivulet',
    keepAlive: true,
  };
  await migrate({ ...common, connectionTimeoutMillis: 3_000 }, schema);
  const pool = {
    ...common,
    schema,
    connectionTimeoutMillis: 3_000,
    statement_timeout: 10_000,
    query_timeout: 12_000,
    // To connect takes longer than to take a job, which may come at any time.
    idleTimeoutMillis: 0,
  };
  const offering: PostgresConnectionOptions = { ...pool, max: 1 };
  const taking: PostgresConnectionOptions = { ...pool, max: takers };
  // Named after the schema: all queues of a database are told of jobs in one channel, and by their names.
  return BullDispatcher.open({ backend: createPostgresBackend, name: schema, offering, taking, look: 5 }, options);
}

/** A name has 63 letters at most; PostgreSQL would cut it, and two that differ at the end would be one. */
export function queueSchema(schema: string): string {
  const name = `${schema}_queue`;
  if (name.length <= 63) return name;
  return `${schema.slice(0, 48)}_${createHash('sha256').update(schema).digest('hex').slice(0, 8)}_queue`;
}

/** Several processes may do so at once: one works, the others wait and find it done. */
async function migrate(config: ConstructorParameters<typeof Client>[0], schema: string): Promise<void> {
  const client = new Client(config);
  await client.connect();
  try {
    // Asked, because the migration wants the right to make schemas even where there is nothing to make.
    const table = `${escapeIdentifier(schema)}.migration`;
    const { rows } = await client.query<{ name: string | null }>('SELECT to_regclass($1) AS name', [table]);
    if (rows[0]?.name != null) {
      const { rows: found } = await client.query<{ version: number }>(`SELECT max(version) AS version FROM ${table}`);
      if (Number(found[0]?.version) >= LATEST_SCHEMA_VERSION) return;
    }
    await runMigrations(client, schema);
  } finally {
    await client.end();
  }
}
