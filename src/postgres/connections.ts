import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg';

/**
 * A connection to PostgreSQL. PostgreSQL may end it at any moment, also while a library has no listener for its errors:
 * before the library adds one, and after it has removed all. Node.js ends a process at an `error` event without a
 * listener, so this connection emits none then. Each query on a lost connection rejects.
 */
export class PostgresClient extends Client {
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    return (event !== 'error' || this.listenerCount(event) > 0) && super.emit(event, ...values);
  }
}

/** A pool of such connections. The next query after the loss of an idle one gets another: `onLost` is for the log. */
export function openPool(config: PoolConfig, onLost: (error: unknown) => void = () => {}): Pool {
  return new Pool({ ...config, Client: PostgresClient }).on('error', onLost);
}

/** Calls back with a connection, and closes it, which rolls back a transaction that was not committed. */
export async function withClient<T>(config: ClientConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new PostgresClient(config);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}
