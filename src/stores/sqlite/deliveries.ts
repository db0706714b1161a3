import {
  type Delivery,
  type DeliveryFilter,
  type DeliveryResult,
  type NewDelivery,
  newDelivery,
  type Outbox,
  type PendingDeliveries,
  type UrlFailures,
} from '../../core/ports/outbox.ts';
import type { WrittenRow } from '../../core/ports/run-store.ts';
import { deliveryColumnList, deliveryColumns } from '../delivery-columns.ts';
import { type Database, replaceNul, type Statement, type Value } from './driver.ts';

/** A condition that few deliveries meet. Queries have to repeat it to use the partial indexes. */
const rare = "state <> 'delivered'";

export const deliveriesSchema = `
  CREATE TABLE deliveries (
    -- The order in a line.
    position INTEGER PRIMARY KEY,
    delivery_id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL,
    owner TEXT,
    url TEXT NOT NULL,
    target TEXT,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    next_at TEXT NOT NULL,
    claimed_until TEXT,
    last_status INTEGER,
    last_error TEXT,
    -- When a claim looks at it; null where it is not pending. A delivery behind one that waits for its next attempt has
    -- the time of that one, so that claims do not find it before.
    due TEXT
  ) STRICT;
  CREATE INDEX deliveries_due ON deliveries (due) WHERE due IS NOT NULL;
  CREATE INDEX deliveries_in_line ON deliveries (run_id, url) WHERE due IS NOT NULL;
  CREATE INDEX deliveries_of_run ON deliveries (run_id, delivery_id);
  CREATE INDEX deliveries_of_owner ON deliveries (owner, delivery_id) WHERE owner IS NOT NULL;
  CREATE INDEX deliveries_of_owner_by_state ON deliveries (owner, state, delivery_id)
    WHERE owner IS NOT NULL AND ${rare};
  CREATE INDEX deliveries_by_state ON deliveries (state, delivery_id) WHERE ${rare};
  CREATE INDEX deliveries_ended ON deliveries (created_at) WHERE due IS NULL;
  -- The failures of URLs since their last success. The owner is empty for deliveries without one.
  CREATE TABLE url_failures (
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    since TEXT NOT NULL,
    last_at TEXT NOT NULL,
    PRIMARY KEY (owner, url)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX url_failures_by_age ON url_failures (last_at);
`;

function prepare(db: Database) {
  const line = (of: string): string => `deliveries AS ${of} INDEXED BY deliveries_in_line WHERE ${of}.due IS NOT NULL`;
  return {
    insert: db.prepare<Value[]>(
      `INSERT INTO deliveries (${deliveryColumnList}, due) VALUES (${deliveryColumns.map(() => '?').join(', ')}, ?)`,
    ),
    firstOfLine: db.prepare<[run_id: string, url: string], { due: string; claimed_until: string | null }>(
      `SELECT due, claimed_until FROM ${line('one')} AND run_id = ? AND url = ? ORDER BY position LIMIT 1`,
    ),
    due: db.prepare<[now: string, limit: number], Delivery>(
      `SELECT ${deliveryColumnList} FROM deliveries AS one INDEXED BY deliveries_due WHERE due <= ? AND NOT EXISTS (
         SELECT 1 FROM ${line('other')} AND other.run_id = one.run_id AND other.url = one.url
         AND other.position < one.position
       ) ORDER BY due, position LIMIT ?`,
    ),
    release: db.prepare<[now: string]>(
      `UPDATE deliveries SET claimed_until = NULL, due = CASE attempt WHEN 0 THEN min(next_at, ?1) ELSE next_at END
       WHERE due IS NOT NULL AND (claimed_until IS NOT NULL OR (attempt = 0 AND next_at > ?1))`,
    ),
    claim: db.prepare<[until: string, due: string, delivery_id: string]>(
      'UPDATE deliveries SET claimed_until = ?, due = ? WHERE delivery_id = ?',
    ),
    finish: db.prepare<Value[]>(
      `UPDATE deliveries SET state = ?, attempt = attempt + ?, next_at = coalesce(?, next_at), claimed_until = NULL,
       last_status = ?, last_error = ?, due = ? WHERE delivery_id = ? AND claimed_until = ?`,
    ),
    delayLine: db.prepare<[due: string, run_id: string, url: string, before: string]>(
      `UPDATE deliveries INDEXED BY deliveries_in_line SET due = ?
       WHERE due IS NOT NULL AND run_id = ? AND url = ? AND due < ?`,
    ),
    failures: db.prepare<[owner: string, url: string], UrlFailures>(
      'SELECT attempts, since, last_at FROM url_failures WHERE owner = ? AND url = ?',
    ),
    addFailure: db.prepare<[owner: string, url: string, since: string, last_at: string]>(
      `INSERT INTO url_failures (owner, url, attempts, since, last_at) VALUES (?, ?, 1, ?, ?)
       ON CONFLICT (owner, url) DO UPDATE SET attempts = attempts + 1, last_at = max(last_at, excluded.last_at)`,
    ),
    forgetFailures: db.prepare<[owner: string, url: string]>('DELETE FROM url_failures WHERE owner = ? AND url = ?'),
    replay: db.prepare<[next_at: string, due: string, delivery_id: string]>(
      `UPDATE deliveries SET state = 'pending', attempt = 0, next_at = ?, due = ?,
       position = (SELECT max(position) + 1 FROM deliveries) WHERE delivery_id = ? AND due IS NULL`,
    ),
    pending: db.prepare<[limit: number], PendingDeliveries>(
      `SELECT count(*) AS count, min(delivery_id) AS oldest FROM (
         SELECT delivery_id FROM deliveries INDEXED BY deliveries_by_state WHERE state = 'pending' AND ${rare}
         ORDER BY delivery_id LIMIT ?
       )`,
    ),
    one: db.prepare<[string], Delivery>(`SELECT ${deliveryColumnList} FROM deliveries WHERE delivery_id = ?`),
  };
}

/** How a file is read and written: see `SqliteStore`. */
export interface FileAccess {
  /** Does work in a transaction. */
  readonly write: <T>(work: () => T) => T;
  /** Does work when what memory has of the file is up to date. */
  readonly read: <T>(work: () => T) => T;
}

/** The outbox of a file. */
export class FileDeliveries implements Outbox {
  readonly #db: Database;
  readonly #sql: ReturnType<typeof prepare>;
  readonly #file: FileAccess;
  /** The statement of each combination of filters, compiled when it is first used. */
  readonly #lists = new Map<string, Statement<Value[], Delivery>>();

  constructor(db: Database, file: FileAccess) {
    this.#db = db;
    this.#sql = prepare(db);
    this.#file = file;
  }

  /** Adds the deliveries of a write. The caller has begun a transaction. */
  add(added: readonly NewDelivery[], run: WrittenRow): void {
    for (const one of added) {
      const row = newDelivery(one, run);
      const first = this.#sql.firstOfLine.get(row.run_id, row.url);
      const waits = first !== undefined && first.claimed_until === null && first.due > row.next_at;
      this.#sql.insert.run(...deliveryColumns.map((column) => row[column]), waits ? first.due : row.next_at);
    }
  }

  /**
   * Ends all claims: no process has any while the file is opened. A first attempt is due at once, also where the clock
   * was set back since its run asked for it. The caller has begun a transaction.
   */
  release(now: string): void {
    this.#sql.release.run(now);
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    return this.#file.write(() => {
      const found = this.#sql.due.all(now, limit);
      for (const { delivery_id } of found) this.#sql.claim.run(until, until, delivery_id);
      return found.map((row) => ({ ...row, claimed_until: until }));
    });
  }

  async finishDelivery(claim: Delivery, result: DeliveryResult): Promise<boolean> {
    return this.#file.write(() => this.#finish(claim, result));
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#file.read(() => this.#sql.one.get(delivery_id));
  }

  async deliveries(filter: DeliveryFilter, before = '~', limit: number): Promise<Delivery[]> {
    const names = (['run_id', 'owner', 'state'] as const).filter((name) => filter[name] !== undefined);
    const [index, ...terms] = indexTerms(filter);
    const where = [...terms, ...names.map((name) => `${name} = ?`), 'delivery_id < ?'].join(' AND ');
    const sql = `SELECT ${deliveryColumnList} FROM deliveries ${index} WHERE ${where}
      ORDER BY delivery_id DESC LIMIT ?`;
    const statement = this.#lists.get(sql) ?? this.#db.prepare<Value[], Delivery>(sql);
    this.#lists.set(sql, statement);
    return this.#file.read(() => statement.all(...names.map((name) => filter[name] ?? null), before, limit));
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    return this.#file.read(() => this.#sql.pending.get(limit)) ?? { count: 0, oldest: null };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    return this.#file.read(() => this.#sql.failures.get(owner ?? '', url));
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    return this.#file.write(() => {
      if (this.#sql.replay.run(now, now, delivery_id).changes === 0) return false;
      const one = this.#sql.one.get(delivery_id);
      if (one !== undefined) this.#sql.forgetFailures.run(one.owner ?? '', one.url);
      return true;
    });
  }

  #finish({ delivery_id, run_id, owner, url, claimed_until }: Delivery, result: DeliveryResult): boolean {
    const { state, status, error, attempted_at: at } = result;
    const next_at = result.state === 'pending' ? result.next_at : null;
    const text = error === null ? null : replaceNul(error);
    const claim = [delivery_id, claimed_until] as const;
    if (this.#sql.finish.run(state, at === null ? 0 : 1, next_at, status, text, next_at, ...claim).changes === 0)
      return false;
    if (state === 'delivered') this.#sql.forgetFailures.run(owner ?? '', url);
    else if (at !== null) this.#sql.addFailure.run(owner ?? '', url, at, at);
    if (next_at !== null) this.#sql.delayLine.run(next_at, run_id, url, next_at);
    return true;
  }
}

/** The index for a list, and the conditions that it requires. SQLite has no statistics to choose it by. */
function indexTerms({ run_id, owner, state }: DeliveryFilter): string[] {
  const isRare = state !== undefined && state !== 'delivered';
  const by = (index: string): string => `INDEXED BY ${index}`;
  if (run_id !== undefined) return [by('deliveries_of_run')];
  if (owner !== undefined) return isRare ? [by('deliveries_of_owner_by_state'), rare] : [by('deliveries_of_owner')];
  return isRare ? [by('deliveries_by_state'), rare] : [''];
}
