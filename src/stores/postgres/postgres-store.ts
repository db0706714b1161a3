import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import type { Pool, QueryResult, QueryResultRow } from 'pg';
import { fullChars } from '../../core/lines.ts';
import type { AgentFigures, OpenRuns, RunFilter, StatusFilter, StatusPosition } from '../../core/ports/run-lists.ts';
import type {
  Batch,
  Key,
  Outcome,
  RunNotification,
  RunRow,
  SharedColumn,
  SharedValue,
  Watch,
  Write,
} from '../../core/ports/run-store.ts';
import type { Resource, SessionRow } from '../../core/ports/session-store.ts';
import type { Cutoffs, Store } from '../../core/ports/store.ts';
import type { RunInput } from '../../core/request.ts';
import { within } from '../../core/timing.ts';
import { openPool } from '../../postgres/connections.ts';
import { everyone } from '../figures.ts';
import { CommitQueue } from '../remote/commit-queue.ts';
import { SharedSubscription } from '../remote/shared-subscription.ts';
import { checkNotifications } from './check-notifications.ts';
import { PostgresClaims } from './claims.ts';
import { PostgresOutbox } from './deliveries.ts';
import { encodeCommit, parseOutcomes } from './encode-commit.ts';
import { classifyPostgresError, explained } from './errors.ts';
import { Listener } from './listener.ts';
import { channelNames, Notifier } from './notifier.ts';
import { Queries, retryRolledBack } from './queries.ts';
import { createSchema } from './schema.ts';
import { type Statements, statements, statusValues } from './statements.ts';

/** Runs, keys or rows of events that one sweep deletes. */
const sweepRows = 100;

/** Sessions that one sweep examines; each has resources. */
const sweepSessions = 10;

/**
 * Milliseconds that a statement may take in the server. The server's time-out comes before the client's, so that the
 * outcome is known. A commit with more than `usualChars` characters gets one more for each KiB: 100 MiB have 110
 * seconds.
 */
const statementTimeout = 8_000;
const usualChars = 4 * 1024 * 1024;
/** Milliseconds after that time-out at which the client takes the answer for lost. */
const answerDelay = 2_000;

/** The most batches of a page. */
const pageBatches = 64;

/** Connections for the leases of nodes and their claims, which must not wait for readers. */
const claimConnections = 2;

/** Connections for all other calls but commits. */
const readConnections = 8;

/** Milliseconds for a clean close of the connections. */
const closeTimeout = 1_000;

/**
 * Keeps everything in one schema of PostgreSQL 13 or newer. A commit is one call of a function, and one transaction; a
 * batch of events is one row. With the default settings of PostgreSQL, every commit survives a crash of the server.
 * Where a connection is lost, or PostgreSQL does not answer for ten seconds, a read fails and a commit waits. The next
 * call connects again.
 */
export class PostgresStore implements Store {
  /** Commits have a connection of their own: they would queue behind the reads of many readers that catch up. */
  readonly #writePool: Pool;
  readonly #readPool: Pool;
  readonly #claimPool: Pool;
  readonly #queries: Queries;
  readonly #sql: Statements;
  readonly #sockets = new Set<Socket>();
  readonly #writer = randomUUID();
  readonly #commits = new CommitQueue((writes, number) => this.#send(writes, number), classifyPostgresError);
  readonly #notifier: Notifier;
  readonly #subscription: SharedSubscription;
  readonly #url: string;
  readonly claims: PostgresClaims;
  readonly outbox: PostgresOutbox;
  #closed: Promise<void> | undefined;

  private constructor(url: string, schema: string) {
    this.#url = url;
    const config = {
      ...connectionConfig(url),
      statement_timeout: statementTimeout,
      query_timeout: statementTimeout + answerDelay,
      stream: () => this.#createSocket(),
    };
    this.#writePool = openPool({ ...config, max: 1, connectionTimeoutMillis: 3_000 });
    // This time includes the wait for a free connection.
    this.#readPool = openPool({ ...config, max: readConnections, connectionTimeoutMillis: 10_000 });
    this.#queries = new Queries(this.#readPool);
    this.#sql = statements(schema);
    const names = channelNames(schema);
    this.#notifier = new Notifier(names, (channels, texts) =>
      this.#readPool.query({ ...this.#sql.notify, values: [channels, texts] }),
    );
    this.#subscription = new SharedSubscription(
      [names],
      (channels, onText) => new Listener(connectionConfig(url), channels, onText),
    );
    this.#claimPool = openPool({ ...config, max: claimConnections, connectionTimeoutMillis: 3_000 });
    this.claims = new PostgresClaims(schema, new Queries(this.#claimPool));
    this.outbox = new PostgresOutbox(schema, this.#queries);
    // The server is reachable again.
    this.#readPool.on('connect', () => this.#commits.retryNow());
  }

  /** `url` is `postgres://`; the tables are in `schema`. @throws Error where a newer Rivulet wrote it */
  static async open(url: string, schema: string): Promise<PostgresStore> {
    const config = connectionConfig(url);
    await checkNotifications(config);
    await createSchema({ ...config, connectionTimeoutMillis: 3_000 }, schema);
    return new PostgresStore(url, schema);
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return this.#commits.commit(writes).catch((error: unknown) => {
      throw explained(error);
    });
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#queries.one(this.#sql.run, run_id);
  }

  async input(run_id: string): Promise<RunInput | undefined> {
    const row = await this.#queries.one<{ input: string }>(this.#sql.input, run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = Math.min(limit, pageBatches);
    const found = await this.#queries.all<{ first: number; body: string }>(
      this.#sql.events,
      run_id,
      after,
      batches,
      fullChars,
    );
    return found.map(({ first, body }) => ({ first, lines: body.split('\n') }));
  }

  async journal(run_id: string): Promise<string[]> {
    const found = await this.#queries.all<{ body: string }>(this.#sql.journal, run_id);
    return found.flatMap(({ body }) => body.split('\n'));
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status, owner, parked } = filter;
    return this.#queries.all(this.#sql.runs, agent_name, session_id, status, owner, before, limit, parked);
  }

  async runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]> {
    const { status_at, run_id } = after ?? { status_at: '~', run_id: '~' };
    return this.#queries.all(this.#sql.runsByStatusTime, ...statusValues(filter), status_at, run_id, limit);
  }

  async countRuns(filter: StatusFilter): Promise<number> {
    return (await this.#queries.one<{ count: number }>(this.#sql.countRuns, ...statusValues(filter)))?.count ?? 0;
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return this.#queries.all(this.#sql.unfinished, session_id, after, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#queries.all(this.#sql.due, now, limit);
  }

  async count(session_id: string): Promise<number> {
    return (await this.#queries.one<{ count: number }>(this.#sql.count, session_id))?.count ?? 0;
  }

  async openRuns(owner?: string): Promise<OpenRuns[]> {
    return this.#queries.all(this.#sql.openRuns, owner);
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#queries.one(this.#sql.key, scope, key);
  }

  async compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean> {
    return this.#queries.taken(this.#sql.compareAndSet(column), run_id, before, after);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    return this.#queries.one(this.#sql.session, session_id);
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    const found = await this.#queries.all<Resource & QueryResultRow>(this.#sql.resources, resource_ids);
    const byId = new Map(found.map((one) => [one.resource_id, one]));
    return resource_ids.map((id) => byId.get(id));
  }

  async figures(agent_names: readonly string[], owner = everyone): Promise<AgentFigures[]> {
    return this.#queries.all(this.#sql.figures, owner, agent_names);
  }

  async sessionsOf(owner: string, limit: number): Promise<string[]> {
    const found = await this.#queries.all<{ session_id: string }>(this.#sql.sessionsOf, owner, limit);
    return found.map(({ session_id }) => session_id);
  }

  async remove(run_id: string): Promise<boolean> {
    return this.#queries.taken(this.#sql.removeRun, run_id);
  }

  async removeSession(session_id: string): Promise<boolean> {
    return this.#queries.taken(this.#sql.removeSession, session_id);
  }

  async removeOwner(owner: string): Promise<void> {
    await this.#queries.change(this.#sql.clearFigures, owner);
    for (const text of [this.#sql.clearKeysOf, this.#sql.clearDeliveriesOf, this.#sql.clearUrlFailuresOf])
      while ((await this.#queries.cleared(text, owner, sweepRows)) > 0);
  }

  async sweep({ runs, keys, sessions, deliveries }: Cutoffs): Promise<boolean> {
    const sql = this.#sql;
    const logs = await this.#queries.cleared(sql.clearLogs, sweepRows);
    const ended = runs === undefined ? 0 : await this.#queries.cleared(sql.clearRuns, runs, sweepRows);
    const used = await this.#queries.cleared(sql.clearKeys, keys, sweepRows);
    const left = sessions === undefined ? 0 : await this.#queries.cleared(sql.clearSessions, sessions, sweepSessions);
    const sent = deliveries === undefined ? 0 : await this.#queries.cleared(sql.clearDeliveries, deliveries, sweepRows);
    const failing =
      deliveries === undefined ? 0 : await this.#queries.cleared(sql.clearUrlFailures, deliveries, sweepRows);
    await this.#queries.all(sql.clearWriters);
    await this.claims.sweep();
    return logs + ended + used + left + sent + failing > 0;
  }

  async watch(moved: (moves: readonly RunNotification[] | undefined) => void): Promise<Watch> {
    return this.#subscription.add(moved);
  }

  async checkNotifications(): Promise<void> {
    await checkNotifications(connectionConfig(this.#url));
  }

  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  async #close(): Promise<void> {
    const notified = this.#commits.close().then(() => this.#notifier.close());
    const ended = notified.then(() =>
      Promise.all([this.#writePool.end(), this.#readPool.end(), this.#claimPool.end()]),
    );
    const done = Promise.all([ended, this.#subscription.close()]);
    await within(closeTimeout, done).catch(() => {});
    // Pending queries fail with their connections.
    for (const socket of this.#sockets) socket.destroy();
    await done;
  }

  async #send(writes: readonly Write[], number: number): Promise<Outcome[]> {
    const encoded = encodeCommit(writes);
    const { values, chars } = encoded;
    const query = { ...this.#sql.commit, values: [this.#writer, number, ...values] };
    const found = await retryRolledBack(() =>
      chars > usualChars
        ? this.#commitLarge(query, statementTimeout + chars / 1024)
        : this.#writePool.query<CommitRow>(query),
    );
    const outcomes = parseOutcomes(found.rows[0]?.outcomes ?? [], encoded);
    this.#notifier.notify(writes.filter((_, index) => outcomes[index] === 'taken'));
    return outcomes;
  }

  /** In a transaction with a longer time-out. */
  async #commitLarge(
    query: { name: string; text: string; values: unknown[] },
    milliseconds: number,
  ): Promise<QueryResult<CommitRow>> {
    const client = await this.#writePool.connect();
    try {
      await client.query('BEGIN');
      await client.query(`SET LOCAL statement_timeout = ${Math.ceil(milliseconds)}`);
      const timed = { ...query, query_timeout: milliseconds + answerDelay };
      const found = await client.query<CommitRow>(timed);
      await client.query('COMMIT');
      client.release();
      return found;
    } catch (error) {
      // Closing the connection rolls back the transaction.
      client.release(true);
      throw error;
    }
  }

  #createSocket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    return socket.once('close', () => this.#sockets.delete(socket));
  }
}

/**
 * Settings of every connection, unless the URL has others. The isolation level is "read committed", whatever the
 * server's default: at the stricter levels, a tenth of the commits of several nodes would fail.
 */
function connectionConfig(address: string) {
  const url = new URL(address);
  // The URL's own options would replace these.
  const flags = url.searchParams.get('options') ?? '';
  url.searchParams.delete('options');
  return {
    connectionString: url.href,
    options: `${flags} -c default_transaction_isolation=read\\ committed`.trim(),
    application_name: 'rivulet',
    keepAlive: true,
  };
}

/** The row that the SQL function `keep` returns. */
interface CommitRow {
  readonly outcomes: string[];
}
