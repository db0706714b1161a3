import { randomUUID } from 'node:crypto';
import type { ClientConfig } from 'pg';
import { within } from '../../core/timing.ts';
import { withClient } from '../../postgres/connections.ts';

/** Milliseconds in which the check's own notification has to arrive. */
const notificationTimeout = 2_000;

const channel = 'rivulet_check';

/**
 * Checks that notifications arrive, over two connections: a pooler that shares sessions may give a notification to the
 * connection that has sent it. Changes nothing. @throws Error that says what to do
 */
export async function checkNotifications(config: ClientConfig): Promise<void> {
  const timed = { ...config, connectionTimeoutMillis: 3_000, query_timeout: 3_000 };
  await withClient(timed, (listening) =>
    withClient(timed, async (sending) => {
      const token = randomUUID();
      const arrived = new Promise<void>((resolve) => {
        listening.on('notification', ({ payload }) => {
          if (payload === token) resolve();
        });
      });
      await listening.query(`LISTEN ${channel}`);
      await sending.query('SELECT pg_notify($1, $2)', [channel, token]);
      const missing = `a notification (LISTEN, NOTIFY) did not arrive within ${notificationTimeout / 1_000} s: a pooler such as PgBouncer in transaction mode drops them, and so does the socket server of PGlite; name the PostgreSQL server itself in the URL of the store`;
      await within(notificationTimeout, arrived, () => new Error(missing));
    }),
  );
}
