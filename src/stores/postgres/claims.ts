import { escapeIdentifier } from 'pg';
import type { RunClaims } from '../../core/ports/run-claims.ts';
import type { Queries } from './queries.ts';

/**
 * Whether a row of `runs` waits for a node: it has none, and `needsExecution` of the port holds. An index has the same
 * condition, word by word, so that PostgreSQL uses it for queries with this text.
 */
export const waits = `node IS NULL AND finished_at IS NULL AND rests_at IS NULL AND (status = 'cancelling' OR queued_at IS NULL)`;

/** Whether any node may take it: see `needsAgent` of the port. */
export const needsNoAgent = `(status = 'cancelling' OR (tier <> 'durable' AND status <> 'created'))`;

/** Runs of dead nodes that one claim gives back. */
const mostFreed = 500;

/** Days for which a node without a lease is known: a commit of it that is on its way names it. */
const forgetAfter = '1 day';

/** Which node has each run: the column `node` of `runs`, and the table `nodes`. */
export class PostgresClaims implements RunClaims {
  readonly #queries: Queries;
  readonly #sql: ReturnType<typeof statements>;

  constructor(schema: string, queries: Queries) {
    this.#sql = statements(escapeIdentifier(schema));
    this.#queries = queries;
  }

  async renewLease(node: string, milliseconds: number): Promise<boolean> {
    await this.#queries.change(this.#sql.renew, node, milliseconds);
    return false;
  }

  async endLease(node: string): Promise<void> {
    await this.#queries.change(this.#sql.end, node);
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    await this.#queries.change(this.#sql.freeDead, node, mostFreed);
    return idsOf(await this.#queries.change(this.#sql.claim, node, agents, limit));
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    return idsOf(await this.#queries.change(this.#sql.take, node, run_ids));
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    return idsOf(await this.#queries.change(this.#sql.held, node, after, limit));
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    await this.#queries.change(this.#sql.free, node, run_ids);
  }

  /** Forgets nodes that are dead for long and have no run. */
  async sweep(): Promise<void> {
    await this.#queries.change(this.#sql.sweep);
  }
}

const idsOf = (rows: { run_id: string }[]): string[] => rows.map(({ run_id }) => run_id).sort();

function statements(s: string) {
  const dead = `SELECT node FROM ${s}.nodes WHERE until <= clock_timestamp()`;
  return {
    renew: `INSERT INTO ${s}.nodes VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond')
      ON CONFLICT (node) DO UPDATE SET until = excluded.until`,
    end: `UPDATE ${s}.nodes SET until = clock_timestamp() WHERE node = $1`,
    freeDead: `UPDATE ${s}.runs SET node = NULL WHERE run_id = ANY (ARRAY(
        SELECT run_id FROM ${s}.runs WHERE node = ANY (ARRAY(${dead})) AND node <> $1
        LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
      ))`,
    // Some more than are wanted: other nodes may have locked the first ones, which are passed over.
    claim: `WITH candidates AS (
        SELECT run_id FROM (
          SELECT one.run_id FROM unnest($2::text[]) AS agent (name) CROSS JOIN LATERAL (
            SELECT run_id FROM ${s}.runs WHERE ${waits} AND agent_name = agent.name COLLATE "C"
            ORDER BY run_id LIMIT 4 * $3::integer
          ) AS one
          UNION
          (SELECT run_id FROM ${s}.runs WHERE ${waits} AND ${needsNoAgent} ORDER BY run_id LIMIT 4 * $3::integer)
        ) AS found ORDER BY run_id LIMIT 4 * $3::integer
      )
      UPDATE ${s}.runs SET node = $1 WHERE run_id = ANY (ARRAY(
        SELECT run_id FROM ${s}.runs WHERE run_id = ANY (ARRAY(SELECT run_id FROM candidates)) AND ${waits}
        ORDER BY run_id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
      )) RETURNING run_id`,
    take: `UPDATE ${s}.runs SET node = $1 WHERE run_id = ANY (ARRAY(
        SELECT run_id FROM ${s}.runs WHERE run_id = ANY ($2) AND finished_at IS NULL
          AND (node IS NULL OR node = $1 OR node = ANY (ARRAY(${dead})))
        ORDER BY run_id FOR NO KEY UPDATE
      )) RETURNING run_id`,
    held: `SELECT run_id FROM ${s}.runs WHERE node = $1 AND run_id > $2 ORDER BY run_id LIMIT $3`,
    free: `UPDATE ${s}.runs SET node = NULL WHERE run_id = ANY (ARRAY(
        SELECT run_id FROM ${s}.runs WHERE run_id = ANY ($2) AND node = $1 ORDER BY run_id FOR NO KEY UPDATE
      ))`,
    sweep: `DELETE FROM ${s}.nodes WHERE until < clock_timestamp() - interval '${forgetAfter}'
      AND NOT EXISTS (SELECT FROM ${s}.runs WHERE runs.node = nodes.node)`,
  };
}
