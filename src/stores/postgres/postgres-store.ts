import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import { DatabaseError, Pool, type QueryResult, type QueryResultRow } from 'pg';
import type {
  AgentFigures,
  Batch,
  Key,
  Outcome,
  Resource,
  Retention,
  RunFilter,
  RunNotification,
  RunRow,
  SessionRow,
  Store,
  Write,
} from '../../core/store.ts';
import type { Message } from '../../schema/message.ts';
import { Deliveries } from '../remote/deliveries.ts';
import { within } from '../remote/outage.ts';
import { Watchers } from '../remote/watchers.ts';
import { sessionOf, storable } from '../remote/write-values.ts';
import { connection } from './connection.ts';
import { Listener } from './listen.ts';
import { Notifier } from './notify.ts';
import { makeSchema } from './schema.ts';
import { type Statements, statements } from './statements.ts';
import { postgresVerdict } from './unavailable.ts';

/** How many runs, keys or rows of events one sweep takes. */
const sweepRows = 100;

/** How many sessions; each has resources. */
const sweepSessions = 10;

/**
 * Milliseconds that a statement may take in the server. The server gives up first, so that it is known what came of it.
 * A commit with more characters than `usualChars` may take one more for each KiB: 100 MiB have 110 seconds.
 */
const statementTimeout = 8_000;
const usualChars = 4 * 1024 * 1024;
/** So much later, the answer counts as lost. */
const answerTime = 2_000;

/** A reader holds a page for as long as it does not read, so a page of long lines ends early, after a batch. */
const pageBytes = 16 * 1024;
const pageBatches = 64;

/** Connections for everything but commits. */
const readers = 8;

/** How often a transaction is begun again that the database has ended in favour of another. */
const attempts = 5;

/** How long the connections may take to end in good order, in milliseconds. */
const goodbye = 1_000;

/** Deadlock, and a conflict where the database is set to serialise: all was undone. */
const undone = new Set(['40P01', '40001']);

/**
 * PostgreSQL 13 or newer. A commit is one call of a function, and one transaction; a batch of events is one row. What
 * survives a crash of the server is up to its settings, which keep every commit unless they were changed.
 * Where a connection is lost, or ten seconds are over, a read fails and a commit waits; the next one connects again.
 */
export class PostgresStore implements Store {
  /** Commits have a connection of their own: readers that catch up, many at once, would queue before them. */
  readonly #writer: Pool;
  readonly #reader: Pool;
  readonly #sql: Statements;
  readonly #sockets = new Set<Socket>();
  readonly #name = randomUUID();
  readonly #deliveries = new Deliveries((writes, number) => this.#take(writes, number), postgresVerdict);
  readonly #notifier: Notifier;
  readonly #watchers: Watchers;
  #closed: Promise<void> | undefined;

  private constructor(url: string, schema: string) {
    const config = {
      ...connection(url),
      statement_timeout: statementTimeout,
      query_timeout: statementTimeout + answerTime,
      stream: () => this.#socket(),
    };
    this.#writer = new Pool({ ...config, max: 1, connectionTimeoutMillis: 3_000 });
    // Readers wait for one of their connections as well.
    this.#reader = new Pool({ ...config, max: readers, connectionTimeoutMillis: 10_000 });
    // A connection that is lost while nobody uses it; whoever comes next gets another.
    for (const pool of [this.#writer, this.#reader]) pool.on('error', () => {});
    this.#sql = statements(schema);
    this.#notifier = new Notifier((texts) => this.#all(this.#sql.notify, schema, texts));
    this.#watchers = new Watchers((hear) => new Listener(connection(url), schema, hear));
    // Somebody has reached the server.
    this.#reader.on('connect', () => this.#deliveries.wake());
  }

  /** `postgres://`; the tables are in a schema of that name. @throws Error where it is of a newer Rivulet */
  static async open(url: string, schema: string): Promise<PostgresStore> {
    await makeSchema({ ...connection(url), connectionTimeoutMillis: 3_000 }, schema);
    return new PostgresStore(url, schema);
  }

  async commit(writes: readonly Write[]): Promise<Outcome[]> {
    return this.#deliveries.commit(writes);
  }

  async run(run_id: string): Promise<RunRow | undefined> {
    return this.#one(this.#sql.run, run_id);
  }

  async input(run_id: string): Promise<Message[] | undefined> {
    const row = await this.#one<{ input: string }>(this.#sql.input, run_id);
    return row === undefined ? undefined : JSON.parse(row.input);
  }

  async events(run_id: string, after: number, limit: number): Promise<Batch[]> {
    const batches = Math.min(limit, pageBatches);
    const found = await this.#all<{ first: number; body: string }>(this.#sql.events, run_id, after, batches, pageBytes);
    return found.map(({ first, body }) => ({ first, lines: body.split('\n') }));
  }

  async journal(run_id: string): Promise<string[]> {
    const found = await this.#all<{ body: string }>(this.#sql.journal, run_id);
    return found.flatMap(({ body }) => body.split('\n'));
  }

  async runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]> {
    const { agent_name, session_id, status } = filter;
    return this.#all(this.#sql.runs, agent_name, session_id, status, before, limit);
  }

  async unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]> {
    return this.#all(this.#sql.unfinished, session_id, after, limit);
  }

  async due(now: string, limit: number): Promise<RunRow[]> {
    return this.#all(this.#sql.due, now, limit);
  }

  async count(session_id: string): Promise<number> {
    return (await this.#one<{ count: number }>(this.#sql.count, session_id))?.count ?? 0;
  }

  async key(scope: string, key: string): Promise<Key | undefined> {
    return this.#one(this.#sql.key, scope, key);
  }

  async session(session_id: string): Promise<SessionRow | undefined> {
    return this.#one(this.#sql.session, session_id);
  }

  async resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]> {
    const found = await this.#all<Resource & QueryResultRow>(this.#sql.resources, resource_ids);
    const byId = new Map(found.map((one) => [one.resource_id, one]));
    return resource_ids.map((id) => byId.get(id));
  }

  async figures(agent_names: readonly string[]): Promise<AgentFigures[]> {
    return this.#all(this.#sql.figures, agent_names);
  }

  async remove(run_id: string): Promise<boolean> {
    return this.#removed(this.#sql.removeRun, run_id);
  }

  async removeSession(session_id: string): Promise<boolean> {
    return this.#removed(this.#sql.removeSession, session_id);
  }

  async sweep({ runs, keys, sessions }: Retention): Promise<boolean> {
    const sql = this.#sql;
    const logs = await this.#cleared(sql.clearLogs, sweepRows);
    const ended = runs === undefined ? 0 : await this.#cleared(sql.clearRuns, runs, sweepRows);
    const used = await this.#cleared(sql.clearKeys, keys, sweepRows);
    const left = sessions === undefined ? 0 : await this.#cleared(sql.clearSessions, sessions, sweepSessions);
    await this.#all(sql.clearWriters);
    return logs + ended + used + left > 0;
  }

  async watch(moved: (moves: readonly RunNotification[] | undefined) => void): Promise<() => Promise<void>> {
    return this.#watchers.add(moved);
  }

  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  async #close(): Promise<void> {
    const told = this.#deliveries.close().then(() => this.#notifier.close());
    const ended = told.then(() => Promise.all([this.#writer.end(), this.#reader.end()]));
    const done = Promise.all([ended, this.#watchers.close()]);
    await within(goodbye, done);
    // What is still under way ends with its connection.
    for (const socket of this.#sockets) socket.destroy();
    await done;
  }

  async #take(writes: readonly Write[], number: number): Promise<Outcome[]> {
    const described = JSON.stringify(writes.map(describe));
    // Events stay outside of the JSON: to escape them once more, and to undo that, takes half of the time of a commit.
    const bodies = writes.map(({ lines }) => lines.join('\n'));
    const chars = bodies.reduce((sum, { length }) => sum + length, described.length);
    const query = { text: this.#sql.keep(bodies.length), values: [this.#name, number, described, ...bodies] };
    const found = await again(() =>
      chars > usualChars ? this.#large(query, statementTimeout + chars / 1024) : this.#writer.query<Kept>(query),
    );
    const { outcomes = [] } = found.rows[0] ?? {};
    this.#notifier.tell(writes.filter((_, index) => outcomes[index] === 'taken').map(({ row }) => row));
    return outcomes;
  }

  /** In a transaction, which has a time-out of its own. */
  async #large(query: { text: string; values: unknown[] }, milliseconds: number): Promise<QueryResult<Kept>> {
    const client = await this.#writer.connect();
    try {
      await client.query('BEGIN');
      await client.query(`SET LOCAL statement_timeout = ${Math.ceil(milliseconds)}`);
      const timed = { ...query, query_timeout: milliseconds + answerTime };
      const found = await client.query<Kept>(timed);
      await client.query('COMMIT');
      client.release();
      return found;
    } catch (error) {
      // The transaction ends with the connection.
      client.release(true);
      throw error;
    }
  }

  #socket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    return socket.once('close', () => this.#sockets.delete(socket));
  }

  async #all<Row extends QueryResultRow>(text: string, ...values: readonly unknown[]): Promise<Row[]> {
    return (await this.#reader.query<Row>(text, values.map(askable))).rows;
  }

  async #one<Row extends QueryResultRow>(text: string, ...values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.#all<Row>(text, ...values))[0];
  }

  async #removed(text: string, id: string): Promise<boolean> {
    const row = await again(() => this.#one<{ removed: boolean }>(text, id));
    return row?.removed === true;
  }

  /** Answers how much it has found. */
  async #cleared(text: string, ...values: readonly unknown[]): Promise<number> {
    const row = await again(() => this.#one<{ found: number }>(text, ...values));
    return row?.found ?? 0;
  }
}

/** What the function `keep` answers. */
interface Kept {
  readonly outcomes: Outcome[];
}

/** A value to look for, as the server accepts it: no text with a zero is kept, so it finds nothing. */
function askable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(askable);
  return typeof value === 'string' ? storable(value) : value;
}

async function again<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      const lost = error instanceof DatabaseError && undone.has(error.code ?? '');
      if (!lost || attempt === attempts) throw error;
    }
  }
}

/** A write as the function `take` reads it. */
function describe(write: Write): object {
  const { row, expect, key, ended, resources } = write;
  return {
    ...row,
    expect,
    grown: write.grown,
    when: write.when,
    from: write.from ?? row.epoch,
    ...(expect === 0 && write.input !== undefined && { input: JSON.stringify(write.input) }),
    journal: write.journal?.join('\n'),
    key,
    resources,
    ...sessionOf(write),
    ...ended,
  };
}
