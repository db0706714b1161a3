import { finalList } from '../run-columns.ts';

/**
 * Functions of a commit, whose parts `encodeCommit` makes. `ids`, `epochs`, `expects`, `lasts` and `logs` are the columns of
 * the writes that only append events. `writes` has all others; bodies[n] has the events of the nth of them, and the last
 * one is empty.
 */
export const commitFunctions = `
  CREATE OR REPLACE FUNCTION digest(url text) RETURNS bytea LANGUAGE sql STABLE AS $$ SELECT sha256(convert_to(url, 'UTF8')) $$;

  -- Applies a commit once, however often it is sent. commit_number counts the commits of the writer. The functions below
  -- use its search path.
  CREATE OR REPLACE FUNCTION keep(
    writer_id text, commit_number bigint,
    ids text[], epochs integer[], expects integer[], lasts integer[], logs text[],
    writes json, bodies text[]
  ) RETURNS text[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    known record;
    answer text[] := '{}';
  BEGIN
    -- The commit may have been sent before, over a connection that was lost, and may still be executing. Only a
    -- statement that begins after its end sees what it wrote.
    PERFORM pg_advisory_xact_lock(hashtextextended(writer_id, 0));
    SELECT number, outcomes INTO known FROM commits WHERE writer = writer_id;
    IF known.number = commit_number THEN RETURN known.outcomes; END IF;
    IF known.number > commit_number THEN RAISE EXCEPTION 'a commit that is out of date'; END IF;
    IF cardinality(bodies) > 0 THEN PERFORM lock_rows(ids, writes); END IF;
    IF cardinality(ids) > 0 THEN answer := append_events(ids, epochs, expects, lasts, logs); END IF;
    IF cardinality(bodies) > 0 THEN answer := answer || take(writes, bodies); END IF;
    IF known.number IS NULL THEN
      INSERT INTO commits (writer, number, outcomes, at) VALUES (writer_id, commit_number, answer, now());
    ELSE
      UPDATE commits SET number = commit_number, outcomes = answer, at = now() WHERE writer = writer_id;
    END IF;
    RETURN answer;
  END $$;

  -- Whether the unfinished runs of a session violate the condition of a write. The oldest and the youngest run decide;
  -- the index has both at its ends.
  CREATE OR REPLACE FUNCTION is_busy(session text, run text, condition text) RETURNS boolean
  LANGUAGE plpgsql AS $$
  DECLARE
    oldest text;
    youngest text;
  BEGIN
    SELECT min(run_id), max(run_id) INTO oldest, youngest FROM runs WHERE session_id = session AND finished_at IS NULL;
    RETURN coalesce(
      (condition <> 'last' AND oldest < run COLLATE "C") OR (condition <> 'first' AND youngest > run COLLATE "C"),
      false
    );
  END $$;

  -- Locks the rows that a commit needs, by id, where its statements would not lock them in this order: two nodes that
  -- lock the same rows in different orders would deadlock.
  CREATE OR REPLACE FUNCTION lock_rows(appended text[], writes json) RETURNS void
  LANGUAGE plpgsql AS $$
  DECLARE
    conditional bigint[];
    known text[];
  BEGIN
    IF appended = '{}' AND NOT has_conditions(writes) THEN RETURN; END IF;
    SELECT array_agg(DISTINCT hashtextextended('session ' || session_id, 1)) FILTER (WHERE "when" IS NOT NULL),
        array_agg(run_id) FILTER (WHERE expect > 0)
      INTO conditional, known
      FROM json_to_recordset(writes) AS (session_id text, run_id text, expect integer, "when" text);
    -- One commit at a time in a session, on all nodes. Each statement sees what was committed before it began, so
    -- later ones see the writes of the node for which this one has waited.
    PERFORM pg_advisory_xact_lock(session) FROM unnest(conditional) AS session ORDER BY session;
    PERFORM FROM runs WHERE run_id = ANY (appended || known) ORDER BY run_id FOR NO KEY UPDATE;
  END $$;

  -- Applies writes that only append events, at most one of each run, with one statement. Returns the outcome of each.
  -- An index finds each row, in the order of the ids. The planner, which does not know how many rows an array has, could
  -- choose to read the whole table.
  CREATE OR REPLACE FUNCTION append_events(
    ids text[], epochs integer[], expects integer[], lasts integer[], logs text[]
  ) RETURNS text[] LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  DECLARE
    outcomes text[] := array_fill('fenced'::text, ARRAY[cardinality(ids)]);
    nth integer;
  BEGIN
    FOR nth IN
      WITH taken AS (
        UPDATE runs SET last = w.last
          FROM (
            SELECT * FROM unnest(ids, epochs, expects, lasts, logs)
              WITH ORDINALITY AS w (run_id, epoch, expect, last, body, position)
            ORDER BY run_id COLLATE "C"
          ) AS w
          WHERE runs.run_id = w.run_id COLLATE "C" AND runs.epoch = w.epoch AND runs.last = w.expect
            AND status NOT IN (${finalList})
          RETURNING w.*
      ), added AS (
        INSERT INTO events (run_id, last, first, body) SELECT run_id, last, expect + 1, body FROM taken
      )
      SELECT taken.position FROM taken
    LOOP
      outcomes[nth] := 'taken';
    END LOOP;
    RETURN outcomes;
  END $$;

  -- Whether a write has a condition on its session.
  CREATE OR REPLACE FUNCTION has_conditions(writes json) RETURNS boolean LANGUAGE sql IMMUTABLE
  AS $$ SELECT strpos(writes::text, '"when":') > 0 $$;

  -- Applies writes of a commit one by one. Returns the outcome of each. Rows are locked in the order of their ids, and
  -- rows that nodes share come last. A commit with conditions on sessions is applied in its own order, because one write
  -- may end the run that another waits for: lock_rows has locked its rows.
  CREATE OR REPLACE FUNCTION take(writes json, bodies text[]) RETURNS text[]
  LANGUAGE plpgsql AS $$
  DECLARE
    w record;
    outcomes text[] := array_fill('fenced'::text, ARRAY[json_array_length(writes)]);
    in_order boolean := has_conditions(writes);
    has_sessions boolean := false;
    has_states boolean := false;
    has_ended boolean := false;
    stored text;
  BEGIN
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (
        run_id text, agent_name text, session_id text, owner text, principal text, targets text,
        trace text, epoch integer, status text, status_at text, title text, created_at text,
        finished_at text, tier text, attempts integer, queued_at text, due text, on_disconnect text, last integer,
        snapshot integer, rests_at text, parked text, node text, expect integer, "from" integer, grown boolean, "when" text, input text, journal text,
        key json, resources json, history json, state text, deliveries json, tokens float8
      )) WITH ORDINALITY
      ORDER BY CASE WHEN NOT in_order THEN run_id COLLATE "C" END, ordinality
    LOOP
      IF w.key IS NOT NULL AND EXISTS (
        SELECT FROM keys
        WHERE scope = w.key ->> 'scope' AND key = w.key ->> 'key' AND created_at >= w.key ->> 'fresh'
      ) THEN
        outcomes[w.ordinality] := 'key_used';
        CONTINUE;
      END IF;
      IF w."when" IS NOT NULL AND is_busy(w.session_id, w.run_id, w."when") THEN
        outcomes[w.ordinality] := 'session_busy';
        CONTINUE;
      END IF;
      IF w.key IS NOT NULL THEN
        INSERT INTO keys (scope, key, hash, run_id, after, created_at)
          SELECT scope, key, hash, run_id, after, created_at FROM json_populate_record(NULL::keys, w.key)
          ON CONFLICT (scope, key) DO UPDATE SET hash = excluded.hash, run_id = excluded.run_id,
            after = excluded.after, created_at = excluded.created_at
          WHERE keys.created_at < w.key ->> 'fresh';
        -- Another node wrote the key at the same time.
        IF NOT FOUND THEN
          outcomes[w.ordinality] := 'key_used';
          CONTINUE;
        END IF;
      END IF;
      -- The fence: only the execution of this epoch writes, only at the end of the log, and never to a final run.
      IF w.input IS NOT NULL THEN
        INSERT INTO runs (run_id, agent_name, session_id, owner, principal, targets, trace, epoch, status,
            status_at, title, created_at, finished_at, tier, attempts, queued_at, due, on_disconnect, last, snapshot, input, node)
          VALUES (w.run_id, w.agent_name, w.session_id, w.owner, w.principal, w.targets, w.trace, w.epoch, w.status,
            w.status_at, w.title, w.created_at, w.finished_at, w.tier, w.attempts, w.queued_at, w.due, w.on_disconnect, w.last, w.snapshot, w.input,
            nullif(w.node, ''))
          ON CONFLICT (run_id) DO NOTHING;
      ELSIF w.grown THEN
        UPDATE runs SET last = w.last
          WHERE run_id = w.run_id AND epoch = w.epoch AND last = w.expect
            AND status NOT IN (${finalList});
      ELSE
        UPDATE runs SET trace = w.trace, epoch = w.epoch, status = w.status, status_at = w.status_at, finished_at = w.finished_at, attempts = w.attempts,
            queued_at = w.queued_at, due = w.due, last = w.last, snapshot = w.snapshot, rests_at = w.rests_at,
            parked = w.parked,
            node = CASE WHEN w.finished_at IS NULL THEN nullif(coalesce(w.node, runs.node), '') END
          WHERE run_id = w.run_id AND epoch = w."from" AND last = w.expect
            AND status NOT IN (${finalList})
            AND (bodies[w.ordinality] = '' OR targets IS NOT DISTINCT FROM w.targets);
      END IF;
      IF NOT FOUND THEN
        IF w.input IS NULL AND w.grown IS NOT TRUE AND bodies[w.ordinality] <> '' THEN
          SELECT targets INTO stored FROM runs
            WHERE run_id = w.run_id AND epoch = w."from" AND last = w.expect
              AND status NOT IN (${finalList});
          IF FOUND THEN outcomes[w.ordinality] := json_build_object('targets', stored)::text; END IF;
        END IF;
        -- A value that this key had before was no longer fresh.
        DELETE FROM keys WHERE scope = w.key ->> 'scope' AND key = w.key ->> 'key';
        CONTINUE;
      END IF;
      outcomes[w.ordinality] := 'taken';
      has_sessions := has_sessions OR w.history IS NOT NULL OR w.state IS NOT NULL;
      has_states := has_states OR w.state IS NOT NULL;
      has_ended := has_ended OR w.tokens IS NOT NULL;
      IF bodies[w.ordinality] <> '' THEN
        INSERT INTO events (run_id, last, first, body)
          VALUES (w.run_id, w.last, w.expect + 1, bodies[w.ordinality]);
      END IF;
      IF w.journal IS NOT NULL THEN
        INSERT INTO journal (run_id, body) VALUES (w.run_id, w.journal);
      END IF;
      IF w.resources IS NOT NULL THEN
        INSERT INTO resources SELECT * FROM json_populate_recordset(NULL::resources, w.resources)
          -- Only the run's own resource is replaced. The body of any other one would be null, which is an error.
          ON CONFLICT (resource_id) DO UPDATE
            SET body = CASE WHEN resources.run_id = excluded.run_id THEN excluded.body END;
      END IF;
      IF w.deliveries IS NOT NULL THEN PERFORM add_deliveries(w.run_id, w.owner, w.deliveries); END IF;
    END LOOP;
    IF has_sessions THEN PERFORM add_to_sessions(writes, outcomes); END IF;
    IF has_states THEN PERFORM set_states(writes, outcomes); END IF;
    IF has_ended THEN PERFORM add_to_figures(writes, outcomes); END IF;
    RETURN outcomes;
  END $$;

  -- Adds the history of applied writes to their sessions, which it creates.
  CREATE OR REPLACE FUNCTION add_to_sessions(writes json, outcomes text[]) RETURNS void
  LANGUAGE plpgsql AS $$
  BEGIN
    -- Always updated: the lock on the row orders the history, and keeps the session from being deleted.
    INSERT INTO sessions (session_id, owner)
      SELECT session_id, max(owner)
      FROM ROWS FROM (json_to_recordset(writes) AS (session_id text, owner text, history json, state text))
        WITH ORDINALITY
      WHERE outcomes[ordinality] = 'taken' AND (history IS NOT NULL OR state IS NOT NULL)
      GROUP BY session_id ORDER BY session_id COLLATE "C"
      ON CONFLICT (session_id) DO UPDATE SET state = sessions.state;
    INSERT INTO history (session_id, digest, url)
      SELECT session_id, digest(url), url
      FROM ROWS FROM (json_to_recordset(writes) AS (session_id text, history json))
        WITH ORDINALITY AS write (session_id, history, nth),
        json_array_elements_text(history) WITH ORDINALITY AS added (url, position)
      WHERE outcomes[nth] = 'taken'
      ORDER BY session_id COLLATE "C", nth, added.position
      ON CONFLICT DO NOTHING;
  END $$;

  -- Replaces the states of sessions by those of applied writes.
  CREATE OR REPLACE FUNCTION set_states(writes json, outcomes text[]) RETURNS void
  LANGUAGE plpgsql AS $$
  DECLARE
    w record;
    before text;
  BEGIN
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (session_id text, state text)) WITH ORDINALITY
      WHERE outcomes[ordinality] = 'taken' AND state IS NOT NULL
      ORDER BY ordinality
    LOOP
      SELECT state INTO before FROM sessions WHERE session_id = w.session_id;
      CONTINUE WHEN w.state = before;
      UPDATE sessions SET state = w.state WHERE session_id = w.session_id;
      -- Only a state of this session is deleted: the URL may be that of a message, or of another session.
      DELETE FROM resources
        WHERE resource_id = substr(before, 12) AND before LIKE '/resources/%'
          AND session_id = w.session_id AND run_id IS NULL;
    END LOOP;
  END $$;

  -- Adds the figures of ended runs to the sums of their agents, and to those of each owner. An overflow of floats is an error, so the function adds
  -- values that are divided by 1024 (exact, as a power of two) and keeps the sum below the largest float. PostgreSQL would
  -- plan a function in SQL anew at each call.
  CREATE OR REPLACE FUNCTION add_to_figures(writes json, outcomes text[]) RETURNS void
  LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO figures (owner, agent_name, completed, failed, tokens, seconds)
      SELECT sums.owner, agent_name, count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
        least(sum(tokens / 1024), 1.7e305) * 1024, least(sum(seconds / 1024), 1.7e305) * 1024
      FROM ROWS FROM (json_to_recordset(writes) AS (
          agent_name text, owner text, status text, tokens float8, seconds float8
        )) WITH ORDINALITY AS ended,
        LATERAL (VALUES (''), (ended.owner)) AS sums (owner)
      WHERE outcomes[ordinality] = 'taken' AND tokens IS NOT NULL AND sums.owner IS NOT NULL
      GROUP BY sums.owner, agent_name ORDER BY sums.owner COLLATE "C", agent_name COLLATE "C"
      ON CONFLICT (owner, agent_name) DO UPDATE SET completed = figures.completed + excluded.completed,
        failed = figures.failed + excluded.failed,
        tokens = least(figures.tokens / 1024 + excluded.tokens / 1024, 1.7e305) * 1024,
        seconds = least(figures.seconds / 1024 + excluded.seconds / 1024, 1.7e305) * 1024;
  END $$;
`;
