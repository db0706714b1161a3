import { escapeIdentifier } from 'pg';
import type { StatusFilter } from '../../core/ports/run-lists.ts';
import type { SharedColumn } from '../../core/ports/run-store.ts';
import { runStatuses } from '../../schema/statuses.ts';
import { columnList } from '../run-columns.ts';

export type Statements = ReturnType<typeof statements>;

/**
 * The SQL statements for the tables of one schema. They name the schema instead of setting a search path, which a pooler
 * may drop.
 */
export function statements(schema: string) {
  const s = escapeIdentifier(schema);
  return { ...writeAndRead(s), ...removal(s) };
}

function writeAndRead(s: string) {
  return {
    /** With `EncodedCommit.values`. */
    commit: {
      name: 'commit',
      text: `SELECT ${s}.keep($1, $2, $3, $4, $5, $6, string_to_array($7, chr(30)), $8, string_to_array($9, chr(30))) AS outcomes`,
    },
    notify: {
      name: 'notify',
      text: 'SELECT pg_notify(channel, text) FROM unnest($1::text[], $2::text[]) AS notification (channel, text)',
    },
    run: { name: 'run', text: `SELECT ${columnList} FROM ${s}.runs WHERE run_id = $1` },
    input: `SELECT input FROM ${s}.runs WHERE run_id = $1`,
    // Up to $3 batches: until they have $4 bytes, or up to one that has as many by itself and is not the first.
    events: {
      name: 'events',
      text: `SELECT first, body FROM (
        SELECT first, last, body, max(octet_length(body)) OVER up AS longest_yet,
          sum(octet_length(body)) OVER up - octet_length(body) AS before
        FROM ${s}.events WHERE run_id = $1 AND last > $2 WINDOW up AS (ORDER BY last) ORDER BY last LIMIT $3
      ) AS page WHERE before = 0 OR (before < $4 AND longest_yet < $4) ORDER BY last`,
    },
    journal: `SELECT body FROM ${s}.journal WHERE run_id = $1 ORDER BY position`,
    // Planned with the values, so an unused filter costs nothing.
    runs: `SELECT ${columnList} FROM ${s}.runs
      WHERE ($1::text IS NULL OR agent_name = $1) AND ($2::text IS NULL OR session_id = $2)
        AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR owner = $4)
        AND ($5::text IS NULL OR run_id < $5) AND ($7::boolean IS NOT TRUE OR parked IS NOT NULL)
      ORDER BY run_id DESC LIMIT $6`,
    // One range of an index for each agent and status. All agents are found with one descent of an index for each.
    runsByStatusTime: `WITH RECURSIVE agents (name) AS (
        SELECT min(agent_name) FROM ${s}.runs WHERE $1::text[] IS NULL UNION ALL
        SELECT (SELECT min(agent_name) FROM ${s}.runs WHERE agent_name > name COLLATE "C") FROM agents WHERE name IS NOT NULL
      ), agent (name) AS (SELECT name FROM agents WHERE name IS NOT NULL UNION ALL SELECT unnest($1::text[]))
      SELECT found.* FROM agent CROSS JOIN unnest($4::text[]) AS wanted (status)
      CROSS JOIN LATERAL (
        SELECT ${columnList} FROM ${s}.runs
        WHERE agent_name = agent.name COLLATE "C" AND ($2::text IS NULL OR session_id = $2)
          AND ($3::text IS NULL OR owner = $3) AND runs.status = wanted.status COLLATE "C"
          AND status_at >= $5 AND (status_at, run_id) < ($6, $7)
        ORDER BY status_at DESC, run_id DESC LIMIT $8
      ) AS found ORDER BY status_at DESC, run_id DESC LIMIT $8`,
    countRuns: `SELECT count(*)::integer AS count FROM ${s}.runs
      WHERE ($1::text[] IS NULL OR agent_name = ANY ($1)) AND ($2::text IS NULL OR session_id = $2)
        AND ($3::text IS NULL OR owner = $3) AND status = ANY ($4::text[]) AND status_at >= $5`,
    unfinished: `SELECT ${columnList} FROM ${s}.runs
      WHERE finished_at IS NULL AND ($1::text IS NULL OR session_id = $1) AND run_id > $2 ORDER BY run_id LIMIT $3`,
    count: `SELECT count(*)::integer AS count FROM ${s}.runs WHERE finished_at IS NULL AND session_id = $1`,
    openRuns: `SELECT status, count(*)::integer AS count, min(run_id) AS oldest
      FROM ${s}.runs WHERE finished_at IS NULL AND ($1::text IS NULL OR owner = $1) GROUP BY status`,
    due: `SELECT ${columnList} FROM ${s}.runs WHERE due <= $1 ORDER BY due LIMIT $2`,
    key: `SELECT scope, key, hash, run_id, after, created_at FROM ${s}.keys WHERE scope = $1 AND key = $2`,
    compareAndSet: (column: SharedColumn): string => `WITH changed AS (
        UPDATE ${s}.runs SET ${column} = $3 WHERE run_id = $1 AND ${column} IS NOT DISTINCT FROM $2 RETURNING 1
      ) SELECT true AS taken FROM changed`,
    session: `SELECT session_id, state, ARRAY(
        SELECT url FROM ${s}.history WHERE history.session_id = sessions.session_id ORDER BY position
      ) AS history FROM ${s}.sessions WHERE session_id = $1`,
    resources: `SELECT resource_id, session_id, run_id, content_type, body FROM ${s}.resources
      WHERE resource_id = ANY ($1)`,
    figures: `SELECT agent_name, completed, failed, tokens, seconds FROM ${s}.figures
      WHERE owner = $1 AND agent_name = ANY ($2)`,
    sessionsOf: `SELECT session_id FROM ${s}.sessions WHERE owner = $1 LIMIT $2`,
  };
}

function removal(s: string) {
  /** Deletes some rows of a table. Several nodes may sweep at the same time: each skips the rows that another has locked. */
  const some = (table: string, rows: string): string => `WITH deleted AS (
      DELETE FROM ${s}.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${s}.${table} WHERE ${rows})) RETURNING 1
    ) SELECT count(*)::integer AS found FROM deleted`;
  const unlocked = 'FOR UPDATE SKIP LOCKED';
  return {
    removeRun: `SELECT ${s}.remove_run($1) AS taken`,
    removeSession: `SELECT ${s}.remove_session($1) AS taken`,
    clearFigures: `DELETE FROM ${s}.figures WHERE owner = $1`,
    // The scopes that begin with the owner and a space; "!" is the character after the space.
    clearKeysOf: some('keys', `scope > $1 || ' ' AND scope < $1 || '!' LIMIT $2`),
    clearDeliveriesOf: some('deliveries', 'owner = $1 LIMIT $2'),
    clearUrlFailuresOf: some('url_failures', 'owner = $1 LIMIT $2'),
    clearRuns: `SELECT ${s}.clear_runs($1, $2) AS found`,
    clearLogs: `SELECT ${s}.clear_logs($1) AS found`,
    clearSessions: `SELECT ${s}.clear_sessions($1, $2) AS found`,
    clearKeys: some('keys', `created_at < $1 LIMIT $2 ${unlocked}`),
    clearDeliveries: some('deliveries', `due IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2 ${unlocked}`),
    clearUrlFailures: some('url_failures', `last_at < $1 ORDER BY last_at LIMIT $2 ${unlocked}`),
    clearWriters: `DELETE FROM ${s}.commits WHERE at < now() - interval '1 day'`,
  };
}

/** The values of a filter, in the order of the parameters of its statements. */
export const statusValues = ({
  agent_names,
  session_id,
  owner,
  statuses = runStatuses,
  since = '',
}: StatusFilter): unknown[] => [agent_names, session_id, owner, statuses, since];
