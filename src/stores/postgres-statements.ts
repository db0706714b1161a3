import { escapeIdentifier } from 'pg';
import { list } from './run-columns.ts';

export type Statements = ReturnType<typeof statements>;

/**
 * Every statement, for the tables of one schema. Named in full instead of by a search path, and not prepared: a pooler
 * may give each statement another session.
 */
export function statements(schema: string) {
  const s = escapeIdentifier(schema);
  return { ...reading(s), ...clearing(s) };
}

function reading(s: string) {
  return {
    /** With one text for each write. */
    keep: (writes: number): string => {
      const bodies = Array.from({ length: writes }, (_, index) => `$${index + 4}`);
      return `SELECT ${s}.keep($1, $2, $3, ARRAY[${bodies}]::text[]) AS taken`;
    },
    notify: 'SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text',
    run: `SELECT ${list} FROM ${s}.runs WHERE run_id = $1`,
    input: `SELECT input FROM ${s}.runs WHERE run_id = $1`,
    // Up to $3 batches, and until there are $4 bytes of them.
    events: `SELECT first, body FROM (
        SELECT first, last, body, sum(octet_length(body)) OVER (ORDER BY last) - octet_length(body) AS before
        FROM ${s}.events WHERE run_id = $1 AND last > $2 ORDER BY last LIMIT $3
      ) AS page WHERE before < $4 ORDER BY last`,
    journal: `SELECT body FROM ${s}.journal WHERE run_id = $1 ORDER BY position`,
    // Planned with the values, so what is not asked for costs nothing.
    runs: `SELECT ${list} FROM ${s}.runs
      WHERE ($1::text IS NULL OR agent_name = $1) AND ($2::text IS NULL OR session_id = $2)
        AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR run_id < $4)
      ORDER BY run_id DESC LIMIT $5`,
    unfinished: `SELECT ${list} FROM ${s}.runs
      WHERE finished_at IS NULL AND ($1::text IS NULL OR session_id = $1) AND run_id > $2 ORDER BY run_id LIMIT $3`,
    due: `SELECT ${list} FROM ${s}.runs WHERE due <= $1 ORDER BY due LIMIT $2`,
    key: `SELECT scope, key, hash, run_id, after, created_at FROM ${s}.keys WHERE scope = $1 AND key = $2`,
    session: `SELECT session_id, state, ARRAY(
        SELECT url FROM ${s}.history WHERE history.session_id = sessions.session_id ORDER BY position
      ) AS history FROM ${s}.sessions WHERE session_id = $1`,
    resource: `SELECT resource_id, session_id, run_id, content_type, body FROM ${s}.resources WHERE resource_id = $1`,
    figures: `SELECT agent_name, completed, failed, tokens, seconds FROM ${s}.figures WHERE agent_name = ANY ($1)`,
  };
}

// Each is one statement, and so one transaction: the parts of it see the same rows.
function clearing(s: string) {
  return {
    removeRun: `WITH gone AS (DELETE FROM ${s}.runs WHERE run_id = $1 RETURNING run_id, session_id),
      said AS (
        DELETE FROM ${s}.resources AS one USING gone
        WHERE one.session_id = gone.session_id AND one.run_id = gone.run_id RETURNING one.session_id, resource_id
      ),
      unsaid AS (
        DELETE FROM ${s}.history AS one USING said
        WHERE one.session_id = said.session_id AND one.url = '/resources/' || resource_id
      ),
      forgotten AS (DELETE FROM ${s}.journal AS one USING gone WHERE one.run_id = gone.run_id)
      INSERT INTO ${s}.removed SELECT run_id FROM gone ON CONFLICT DO NOTHING`,
    removeSession: `WITH gone AS (DELETE FROM ${s}.runs WHERE session_id = $1 RETURNING run_id),
      forgotten AS (DELETE FROM ${s}.journal AS one USING gone WHERE one.run_id = gone.run_id),
      unsaid AS (DELETE FROM ${s}.history WHERE session_id = $1),
      said AS (DELETE FROM ${s}.resources WHERE session_id = $1),
      closed AS (DELETE FROM ${s}.sessions WHERE session_id = $1)
      INSERT INTO ${s}.removed SELECT run_id FROM gone ON CONFLICT DO NOTHING`,
    // Several nodes sweep: what one has in hand, the others leave to it.
    // In the order of its index, so that no log is looked for in all of them.
    clearLogs: `WITH gone AS (SELECT run_id FROM ${s}.removed LIMIT $1 FOR UPDATE SKIP LOCKED),
      cleared AS (
        DELETE FROM ${s}.events WHERE ctid = ANY (ARRAY(
          SELECT log.ctid FROM gone CROSS JOIN LATERAL (
            SELECT one.ctid FROM ${s}.events AS one WHERE one.run_id = gone.run_id ORDER BY last LIMIT $1
          ) AS log LIMIT $1
        )) RETURNING 1
      ),
      done AS (
        DELETE FROM ${s}.removed AS one USING gone
        WHERE one.run_id = gone.run_id AND (SELECT count(*) FROM cleared) < $1
      )
      SELECT run_id FROM gone`,
    retire: `WITH old AS (
        SELECT run_id FROM ${s}.runs WHERE finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED
      ),
      forgotten AS (DELETE FROM ${s}.journal AS one USING old WHERE one.run_id = old.run_id),
      gone AS (DELETE FROM ${s}.runs AS one USING old WHERE one.run_id = old.run_id)
      INSERT INTO ${s}.removed SELECT run_id FROM old ON CONFLICT DO NOTHING`,
    clearKeys: `DELETE FROM ${s}.keys WHERE (scope, key) IN (
        SELECT scope, key FROM ${s}.keys WHERE created_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
      )`,
    clearWriters: `DELETE FROM ${s}.commits WHERE at < now() - interval '1 day'`,
  };
}
