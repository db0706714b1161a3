import { DatabaseError, type Pool, type QueryResultRow } from 'pg';
import { retry } from '../../core/timing.ts';
import { sanitizeText } from '../remote/session-changes.ts';

/** A statement. One with a name is prepared: PostgreSQL parses and plans it once in a connection. */
export type Query = string | { readonly name: string; readonly text: string };

/** Attempts of a transaction that the database rolls back in favour of another. */
const maxAttempts = 5;

/** A deadlock, and a serialization failure: the transaction was rolled back. */
const rolledBack = new Set(['40P01', '40001']);

/** Repeats a transaction that the database has rolled back in favour of another. */
export function retryRolledBack<T>(transaction: () => Promise<T>): Promise<T> {
  let attempts = 1;
  const again = (error: unknown): boolean =>
    error instanceof DatabaseError && rolledBack.has(error.code ?? '') && attempts++ < maxAttempts;
  return retry(transaction, { again });
}

/** Statements, each on a free connection of a pool. */
export class Queries {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async all<Row extends QueryResultRow>(query: Query, ...values: readonly unknown[]): Promise<Row[]> {
    const { name, text } = typeof query === 'string' ? { text: query } : query;
    return (await this.#pool.query<Row>({ name, text, values: values.map(sanitizeValue) })).rows;
  }

  async one<Row extends QueryResultRow>(query: Query, ...values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.all<Row>(query, ...values))[0];
  }

  /** As `all`, for a statement that changes something. */
  change<Row extends QueryResultRow>(query: Query, ...values: readonly unknown[]): Promise<Row[]> {
    return retryRolledBack(() => this.all(query, ...values));
  }

  /** Whether a statement has changed something. */
  async taken(text: string, ...values: readonly unknown[]): Promise<boolean> {
    return (await this.change<{ taken: boolean }>(text, ...values))[0]?.taken === true;
  }

  /** The number of items that a sweep has found. */
  async cleared(text: string, ...values: readonly unknown[]): Promise<number> {
    return (await this.change<{ found: number }>(text, ...values))[0]?.found ?? 0;
  }
}

/** A query parameter that the server accepts. No stored text has a NUL, so a text that had one finds nothing. */
function sanitizeValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sanitizeValue);
  return typeof value === 'string' ? sanitizeText(value) : value;
}
