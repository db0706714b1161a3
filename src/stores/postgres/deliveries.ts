import { escapeIdentifier } from 'pg';
import type {
  Delivery,
  DeliveryFilter,
  DeliveryResult,
  Outbox,
  PendingDeliveries,
  UrlFailures,
} from '../../core/ports/outbox.ts';
import { deliveryColumnList } from '../delivery-columns.ts';
import type { Queries } from './queries.ts';

export const deliveryTables = `
  CREATE TABLE deliveries (
    delivery_id text COLLATE "C" PRIMARY KEY,
    -- The order in a line.
    position bigint GENERATED ALWAYS AS IDENTITY,
    run_id text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    url text NOT NULL,
    target text,
    type text NOT NULL,
    body text NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    next_at text COLLATE "C" NOT NULL,
    claimed_until text COLLATE "C",
    last_status integer,
    last_error text,
    -- When a claim looks at it; null where it is not pending. A delivery behind one that waits for its next attempt has
    -- the time of that one, so that claims do not find it before.
    due text COLLATE "C"
  );
  CREATE INDEX deliveries_due ON deliveries (due) WHERE due IS NOT NULL;
  CREATE INDEX deliveries_in_line ON deliveries (run_id, position) WHERE due IS NOT NULL;
  CREATE INDEX deliveries_of_run ON deliveries (run_id, delivery_id);
  CREATE INDEX deliveries_of_owner ON deliveries (owner, delivery_id) WHERE owner IS NOT NULL;
  CREATE INDEX deliveries_of_owner_by_state ON deliveries (owner, state, delivery_id)
    WHERE owner IS NOT NULL AND state <> 'delivered';
  CREATE INDEX deliveries_by_state ON deliveries (state, delivery_id) WHERE state <> 'delivered';
  CREATE INDEX deliveries_ended ON deliveries (created_at) WHERE due IS NULL;

  -- The failures of URLs since their last success. The owner is empty for deliveries without one.
  CREATE TABLE url_failures (
    owner text COLLATE "C" NOT NULL,
    -- Of the URL, which may be too long for an index.
    digest bytea NOT NULL,
    attempts integer NOT NULL,
    since text COLLATE "C" NOT NULL,
    last_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, digest)
  );
  CREATE INDEX url_failures_by_age ON url_failures (last_at);
`;

export const deliveryFunctions = `
  -- Adds the deliveries of a write. The caller has locked the run's row, so a line gets its deliveries in order.
  CREATE FUNCTION add_deliveries(run text, run_owner text, added json) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    INSERT INTO deliveries (delivery_id, run_id, owner, url, target, type, body, created_at, state, attempt, next_at, due)
      SELECT one.delivery_id, run, run_owner, one.url, one.target, one.type, one.body, one.created_at, 'pending', 0, one.created_at,
        -- The claim of the first in the line may end at any time; its next attempt is not before it is due.
        greatest(one.created_at, (
          SELECT CASE WHEN claimed_until IS NULL THEN due END FROM deliveries
          WHERE run_id = run AND url = one.url AND due IS NOT NULL ORDER BY position LIMIT 1
        ))
      FROM ROWS FROM (json_to_recordset(added) AS (
        delivery_id text, url text, target text, type text, body text, created_at text
      )) WITH ORDINALITY AS one ORDER BY one.ordinality;
  END $$;

  -- Claims deliveries. Several nodes may do so at the same time: each skips the rows that another has locked.
  CREATE FUNCTION claim_deliveries(time_now text, until text, max_rows integer) RETURNS SETOF deliveries
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    one deliveries;
  BEGIN
    FOR one IN
      SELECT * FROM deliveries AS first WHERE due <= time_now AND NOT EXISTS (
        SELECT FROM deliveries AS other
        WHERE other.due IS NOT NULL AND other.run_id = first.run_id AND other.url = first.url
          AND other.position < first.position
      ) ORDER BY due, position LIMIT max_rows FOR UPDATE OF first SKIP LOCKED
    LOOP
      UPDATE deliveries SET claimed_until = until, due = until WHERE delivery_id = one.delivery_id RETURNING * INTO one;
      RETURN NEXT one;
    END LOOP;
  END $$;

  -- Records the end of a claim, and of its attempt if there was one. False where the claim is over.
  CREATE FUNCTION finish_delivery(
    id text, claim text, new_state text, attempted_at text, status integer, error text, due_again text
  ) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    one deliveries;
  BEGIN
    UPDATE deliveries SET state = new_state, attempt = attempt + (attempted_at IS NOT NULL)::integer,
        next_at = coalesce(due_again, next_at), claimed_until = NULL, last_status = status, last_error = error, due = due_again
      WHERE delivery_id = id AND claimed_until = claim RETURNING * INTO one;
    IF one.delivery_id IS NULL THEN RETURN false; END IF;
    -- Those behind it wait as long.
    UPDATE deliveries SET due = due_again WHERE run_id = one.run_id AND url = one.url AND due < due_again;
    IF new_state = 'delivered' THEN
      DELETE FROM url_failures WHERE owner = coalesce(one.owner, '') AND digest = digest(one.url);
    ELSIF attempted_at IS NOT NULL THEN
      INSERT INTO url_failures AS known (owner, digest, attempts, since, last_at)
        VALUES (coalesce(one.owner, ''), digest(one.url), 1, attempted_at, attempted_at)
        ON CONFLICT (owner, digest) DO UPDATE
          SET attempts = known.attempts + 1, last_at = greatest(known.last_at, excluded.last_at);
    END IF;
    RETURN true;
  END $$;
`;

/** The outbox of a schema. */
export class PostgresOutbox implements Outbox {
  readonly #queries: Queries;
  readonly #sql: ReturnType<typeof statements>;

  constructor(schema: string, queries: Queries) {
    this.#sql = statements(escapeIdentifier(schema));
    this.#queries = queries;
  }

  async claimDeliveries(now: string, until: string, limit: number): Promise<Delivery[]> {
    return this.#queries.change(this.#sql.claim, now, until, limit);
  }

  async finishDelivery({ delivery_id, claimed_until }: Delivery, result: DeliveryResult): Promise<boolean> {
    const { state, attempted_at, status, error } = result;
    const next_at = result.state === 'pending' ? result.next_at : null;
    return this.#queries.taken(
      this.#sql.finish,
      delivery_id,
      claimed_until,
      state,
      attempted_at,
      status,
      error,
      next_at,
    );
  }

  async delivery(delivery_id: string): Promise<Delivery | undefined> {
    return this.#queries.one(this.#sql.one, delivery_id);
  }

  async deliveries(
    { run_id, owner, state }: DeliveryFilter,
    before: string | undefined,
    limit: number,
  ): Promise<Delivery[]> {
    return this.#queries.all(this.#sql.list, run_id, owner, state, before, limit);
  }

  async pendingDeliveries(limit: number): Promise<PendingDeliveries> {
    return (await this.#queries.one<PendingDeliveries>(this.#sql.pending, limit)) ?? { count: 0, oldest: null };
  }

  async urlFailures(owner: string | null, url: string): Promise<UrlFailures | undefined> {
    return this.#queries.one(this.#sql.failures, owner ?? '', url);
  }

  async replayDelivery(delivery_id: string, now: string): Promise<boolean> {
    return this.#queries.taken(this.#sql.replay, delivery_id, now);
  }
}

const statements = (s: string) => ({
  claim: `SELECT ${deliveryColumnList} FROM ${s}.claim_deliveries($1, $2, $3)`,
  finish: `SELECT ${s}.finish_delivery($1, $2, $3, $4, $5, $6, $7) AS taken`,
  one: `SELECT ${deliveryColumnList} FROM ${s}.deliveries WHERE delivery_id = $1`,
  // Planned with the values, so an unused filter costs nothing.
  list: `SELECT ${deliveryColumnList} FROM ${s}.deliveries
    WHERE ($1::text IS NULL OR run_id = $1) AND ($2::text IS NULL OR owner = $2) AND ($3::text IS NULL OR state = $3)
      AND ($4::text IS NULL OR delivery_id < $4)
    ORDER BY delivery_id DESC LIMIT $5`,
  pending: `SELECT count(*)::integer AS count, min(delivery_id) AS oldest FROM (
      SELECT delivery_id FROM ${s}.deliveries WHERE state = 'pending' ORDER BY delivery_id LIMIT $1
    ) AS first`,
  failures: `SELECT attempts, since, last_at FROM ${s}.url_failures WHERE owner = $1 AND digest = ${s}.digest($2)`,
  replay: `WITH replayed AS (
      UPDATE ${s}.deliveries SET state = 'pending', attempt = 0, next_at = $2, due = $2, position = DEFAULT
        WHERE delivery_id = $1 AND due IS NULL RETURNING owner, url
    ),
    forgotten AS (
      DELETE FROM ${s}.url_failures AS known USING replayed
        WHERE known.owner = coalesce(replayed.owner, '') AND known.digest = ${s}.digest(replayed.url)
    )
    SELECT true AS taken FROM replayed`,
});
