import { createHash, randomUUID } from 'node:crypto';
import { type Client, type ClientConfig, escapeIdentifier } from 'pg';
import { within } from '../../core/timing.ts';
import { withClient } from '../../postgres/connections.ts';

/** Milliseconds in which the check's own notification has to arrive. */
const notificationTimeout = 2_000;

const channel = 'rivulet_check';

/** The name of the queue's schema. PostgreSQL truncates names to 63 characters, so longer ones end in a hash. */
export function queueSchema(schema: string): string {
  const name = `${schema}_queue`;
  if (name.length <= 63) return name;
  return `${schema.slice(0, 48)}_${createHash('sha256').update(schema).digest('hex').slice(0, 8)}_queue`;
}

/** The settings of all connections of a queue. BullMQ appends its search path to these options. */
export function queueConfig(address: string) {
  const url = new URL(address);
  // Options in the URL would replace these.
  const flags = url.searchParams.get('options');
  url.searchParams.delete('options');
  return {
    connectionString: url.href,
    // A crash may lose or restore the last jobs. The runs are in the store, so no call has to wait for the disk.
    // At stricter isolation levels, transactions fail when several nodes take jobs.
    options: `${flags ?? ''} -c synchronous_commit=off -c default_transaction_isolation=read\\ committed`.trim(),
    application_name: 'rivulet',
    keepAlive: true,
  };
}

/**
 * Checks what a queue needs of its server and changes nothing: that its connections find its schema, may use it, and get
 * notifications. A pooler may prevent the first and the last, and the queue would only wait then.
 * @throws Error that says what is missing and what to do
 */
export async function checkPostgresQueue(address: string, storeSchema: string): Promise<void> {
  const schema = queueSchema(storeSchema);
  const common = queueConfig(address);
  const config: ClientConfig = {
    ...common,
    options: `${common.options} -c search_path=${escapeIdentifier(schema)}`,
    connectionTimeoutMillis: 3_000,
    query_timeout: 3_000,
  };
  await withClient(config, async (one) => {
    await checkSearchPath(one, schema);
    await checkRights(one, schema);
    await withClient(config, (other) => checkNotifications(one, other));
  });
}

async function checkSearchPath(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ path: string }>("SELECT current_setting('search_path') AS path");
  const [{ path } = { path: '' }] = rows;
  if (path === escapeIdentifier(schema)) return;
  throw new Error(
    `expected the search_path "${schema}", which the startup parameter "options" sets, and PostgreSQL has ${path}: ` +
      'a pooler such as PgBouncer drops the parameter; give the store URL the server itself',
  );
}

interface Rights {
  readonly role: string;
  readonly database: string;
  /** Whether the role may create schemas. */
  readonly creates: boolean;
  /** Whether the schema has tables; null where there is no such schema. */
  readonly filled: boolean | null;
  readonly granted: boolean | null;
}

const rightsQuery = `
  SELECT current_user AS role, current_database() AS database,
    has_database_privilege(current_database(), 'CREATE') AS creates,
    EXISTS (SELECT FROM pg_class WHERE relnamespace = space.oid AND relkind = 'r') AS filled,
    has_schema_privilege(space.oid, 'USAGE')
      AND NOT EXISTS (
        SELECT FROM pg_class AS one WHERE relnamespace = space.oid AND NOT CASE relkind
          WHEN 'r' THEN has_table_privilege(one.oid, 'SELECT') AND has_table_privilege(one.oid, 'INSERT')
            AND has_table_privilege(one.oid, 'UPDATE') AND has_table_privilege(one.oid, 'DELETE')
          WHEN 'S' THEN has_sequence_privilege(one.oid, 'USAGE')
          ELSE true END
      )
      AND NOT EXISTS (
        SELECT FROM pg_proc WHERE pronamespace = space.oid AND NOT has_function_privilege(pg_proc.oid, 'EXECUTE')
      ) AS granted
  FROM (SELECT to_regnamespace($1) AS oid) AS space`;

async function checkRights(client: Client, schema: string): Promise<void> {
  const name = escapeIdentifier(schema);
  const { rows } = await client.query<Rights>(rightsQuery, [name]);
  const [rights] = rows;
  if (rights === undefined) return;
  const role = escapeIdentifier(rights.role);
  if (rights.filled !== true) {
    if (rights.creates) return;
    throw new Error(
      `the role ${role} may not create the schema ${name} of the queue; ` +
        `run: GRANT CREATE ON DATABASE ${escapeIdentifier(rights.database)} TO ${role}`,
    );
  }
  if (rights.granted === true) return;
  const grants = [
    `USAGE ON SCHEMA ${name}`,
    `SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name}`,
    `USAGE ON ALL SEQUENCES IN SCHEMA ${name}`,
    `EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name}`,
  ].map((grant) => `GRANT ${grant} TO ${role}`);
  throw new Error(
    `the role ${role} may not use the schema ${name} of the queue; run as its owner: ${grants.join('; ')}`,
  );
}

/** Two connections, because a pooler that shares sessions may give a notification to the connection that has sent it. */
async function checkNotifications(listening: Client, sending: Client): Promise<void> {
  const token = randomUUID();
  const arrived = new Promise<void>((resolve) => {
    listening.on('notification', ({ payload }) => {
      if (payload === token) resolve();
    });
  });
  await listening.query(`LISTEN ${channel}`);
  await sending.query('SELECT pg_notify($1, $2)', [channel, token]);
  const missing = `a notification (LISTEN, NOTIFY) did not arrive within ${notificationTimeout / 1_000} s: a pooler such as PgBouncer in transaction mode drops them; give the store URL the server itself`;
  await within(notificationTimeout, arrived, () => new Error(missing));
}
