import {
  type BackendFactory,
  createPostgresBackend,
  LATEST_SCHEMA_VERSION,
  type PostgresConnectionOptions,
  type PostgresQueueBackend,
  runMigrations,
} from 'bullmq';
import { type ClientConfig, escapeIdentifier } from 'pg';
import { PostgresClient, withClient } from '../../postgres/connections.ts';
import { BullDispatcher, type BullOptions } from './bullmq-dispatcher.ts';
import { checkPostgresQueue, queueConfig, queueSchema } from './postgres-check.ts';

/** Connections to take, renew and end jobs. Two more wait for jobs and offer runs. */
const workConnections = 3;

/** Opens a queue in PostgreSQL, with five connections at most. Its tables are in a schema beside the store's. */
export async function openPostgresQueue(address: string, storeSchema: string, options: BullOptions) {
  const schema = queueSchema(storeSchema);
  const common = queueConfig(address);
  const check = (): Promise<void> => checkPostgresQueue(address, storeSchema);
  await check();
  await migrate({ ...common, connectionTimeoutMillis: 3_000 }, schema);
  const pool = {
    ...common,
    Client: PostgresClient,
    schema,
    connectionTimeoutMillis: 3_000,
    statement_timeout: 10_000,
    query_timeout: 12_000,
    // Connections stay open, because connecting takes longer than taking a job.
    idleTimeoutMillis: 0,
  };
  const offerConnection: PostgresConnectionOptions = { ...pool, max: 1 };
  const workConnection: PostgresConnectionOptions = { ...pool, max: workConnections };
  // Named after the schema: all queues of a database share one notification channel, and are told apart by name.
  const location = { backend: createBackend, name: schema, offerConnection, workConnection, pollInterval: 5, check };
  return BullDispatcher.open(location, options);
}

/**
 * BullMQ stores the end of a lease, and the last check for such ends, in the time of the node that writes them. A node
 * whose clock is behind would lose its runs to the others. After a check by a node whose clock is ahead, no node would
 * check again until that time. So all of them use the clock of the server, as they do in Redis.
 */
const createBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (...options) => {
  const backend = createPostgresBackend(...options);
  // BullMQ makes the client with which it waits for jobs with this module, and not as its pool makes clients.
  Reflect.set(Reflect.get(backend, 'connection'), 'pgModule', { Client: PostgresClient });
  return new Proxy(backend, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (name !== 'query' || typeof value !== 'function') return value;
      return (text: string, values: unknown): unknown => Reflect.apply(value, receiver, [inServerTime(text), values]);
    },
  });
};

/** The parameter of a command that is the time now: each command of BullMQ describes its parameters in a comment. */
const nowParameter = /\$\d+(?= now_ms\b)/;

function inServerTime(command: string): string {
  const [now] = nowParameter.exec(command) ?? [];
  // PostgreSQL wants to know the type of each parameter, so this one has to occur.
  const serverTime = `(0 * ${now}::bigint + (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;
  return now === undefined ? command : command.replaceAll(now, () => serverTime);
}

/** Creates the tables. Several processes may call it at once: one creates them, the others wait and find them. */
async function migrate(config: ClientConfig, schema: string): Promise<void> {
  await withClient(config, async (client) => {
    // Checked first: the migration needs the permission to create schemas even where there is nothing to create.
    const table = `${escapeIdentifier(schema)}.migration`;
    const { rows } = await client.query<{ name: string | null }>('SELECT to_regclass($1) AS name', [table]);
    if (rows[0]?.name != null) {
      const { rows: found } = await client.query<{ version: number }>(`SELECT max(version) AS version FROM ${table}`);
      if (Number(found[0]?.version) >= LATEST_SCHEMA_VERSION) return;
    }
    await runMigrations(client, schema);
  });
}
