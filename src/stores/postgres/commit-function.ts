/** What a commit calls. The writes come as JSON, see `describe`; bodies[n] are the events of the nth write. */
export const takeFunctions = `
  CREATE FUNCTION digest(url text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(convert_to(url, 'UTF8')) $$;

  -- Takes a commit once, however often it comes: nth is its number.
  CREATE FUNCTION keep(who text, nth bigint, writes json, bodies text[]) RETURNS text[]
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    known record;
    answer text[];
  BEGIN
    -- The commit may have come before, over a connection that was lost, and may still be at work: what it has kept
    -- is seen only by a statement that begins when it is done.
    PERFORM pg_advisory_xact_lock(hashtextextended(who, 0));
    SELECT number, outcomes INTO known FROM commits WHERE writer = who;
    IF known.number = nth THEN RETURN known.outcomes; END IF;
    IF known.number > nth THEN RAISE EXCEPTION 'a commit that is out of date'; END IF;
    answer := take(writes, bodies);
    IF known.number IS NULL THEN
      INSERT INTO commits (writer, number, outcomes, at) VALUES (who, nth, answer, now());
    ELSE
      UPDATE commits SET number = nth, outcomes = answer, at = now() WHERE writer = who;
    END IF;
    RETURN answer;
  END $$;

  -- Whether the condition of a write on the unfinished runs of its session does not hold. The oldest and the youngest
  -- of them decide; the index has both at its ends.
  CREATE FUNCTION is_busy(session text, run text, condition text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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

  -- The writes of a commit, all in one transaction. Answers for each what became of it.
  -- Rows are locked by name, and those that nodes share come last: two nodes that locked the same ones in another
  -- order would wait for each other. Only a commit with conditions on sessions is taken in its own order, as one write
  -- may end what another waits for; so it locks what it needs by name before it begins.
  CREATE FUNCTION take(writes json, bodies text[]) RETURNS text[]
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    w record;
    outcomes text[] := array_fill('fenced'::text, ARRAY[cardinality(bodies)]);
    has_conditions boolean := strpos(writes::text, '"when":') > 0;
    has_sessions boolean := false;
    has_ended boolean := false;
    conditional bigint[];
    known text[];
  BEGIN
    IF has_conditions THEN
      SELECT array_agg(DISTINCT hashtextextended('session ' || session_id, 1)) FILTER (WHERE "when" IS NOT NULL),
          array_agg(run_id) FILTER (WHERE expect > 0)
        INTO conditional, known
        FROM json_to_recordset(writes) AS (session_id text, run_id text, expect integer, "when" text);
      -- One at a time in a session, whatever node it comes from. Each statement sees what was committed before it
      -- began, so those below see what was kept by the node that this one has waited for.
      PERFORM pg_advisory_xact_lock(session) FROM unnest(conditional) AS session ORDER BY session;
      PERFORM FROM runs WHERE run_id = ANY (known) ORDER BY run_id FOR NO KEY UPDATE;
    END IF;
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (
        run_id text, agent_name text, session_id text, owner text, epoch integer, status text, created_at text,
        finished_at text, tier text, attempts integer, queued_at text, due text, on_disconnect text, last integer,
        snapshot integer, expect integer, "from" integer, grown boolean, "when" text, input text, journal text,
        key json, resources json, history json, state text, tokens float8
      )) WITH ORDINALITY
      ORDER BY CASE WHEN NOT has_conditions THEN run_id COLLATE "C" END, ordinality
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
        -- Another node has brought it at the same time.
        IF NOT FOUND THEN
          outcomes[w.ordinality] := 'key_used';
          CONTINUE;
        END IF;
      END IF;
      -- The fence: only the execution of this epoch, only at the end of the log, and never after the end.
      IF w.input IS NOT NULL THEN
        INSERT INTO runs VALUES (w.run_id, w.agent_name, w.session_id, w.owner, w.epoch, w.status, w.created_at,
            w.finished_at, w.tier, w.attempts, w.queued_at, w.due, w.on_disconnect, w.last, w.snapshot, w.input)
          ON CONFLICT (run_id) DO NOTHING;
      ELSIF w.grown THEN
        UPDATE runs SET last = w.last
          WHERE run_id = w.run_id AND epoch = w.epoch AND last = w.expect
            AND status NOT IN ('completed', 'failed', 'cancelled');
      ELSE
        UPDATE runs SET epoch = w.epoch, status = w.status, finished_at = w.finished_at, attempts = w.attempts,
            queued_at = w.queued_at, due = w.due, last = w.last, snapshot = w.snapshot
          WHERE run_id = w.run_id AND epoch = w."from" AND last = w.expect
            AND status NOT IN ('completed', 'failed', 'cancelled');
      END IF;
      IF NOT FOUND THEN
        -- What was under this key before, if anything, was no longer fresh.
        DELETE FROM keys WHERE scope = w.key ->> 'scope' AND key = w.key ->> 'key';
        CONTINUE;
      END IF;
      outcomes[w.ordinality] := 'taken';
      has_sessions := has_sessions OR w.history IS NOT NULL OR w.state IS NOT NULL;
      has_ended := has_ended OR w.tokens IS NOT NULL;
      IF bodies[w.ordinality] <> '' THEN
        INSERT INTO events (run_id, last, first, body)
          VALUES (w.run_id, w.last, w.expect + 1, bodies[w.ordinality]);
      END IF;
      IF w.journal IS NOT NULL THEN
        INSERT INTO journal (run_id, body) VALUES (w.run_id, w.journal);
      END IF;
      IF w.resources IS NOT NULL THEN
        INSERT INTO resources SELECT * FROM json_populate_recordset(NULL::resources, w.resources);
      END IF;
    END LOOP;
    IF has_sessions THEN PERFORM add_to_sessions(writes, outcomes); END IF;
    IF has_ended THEN PERFORM add_to_figures(writes, outcomes); END IF;
    RETURN outcomes;
  END $$;

  -- What the writes that were taken add to their sessions.
  CREATE FUNCTION add_to_sessions(writes json, outcomes text[]) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    w record;
    before text;
  BEGIN
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (session_id text, owner text, history json, state text))
        WITH ORDINALITY
      WHERE outcomes[ordinality] = 'taken' AND (history IS NOT NULL OR state IS NOT NULL)
      ORDER BY session_id COLLATE "C", ordinality
    LOOP
      -- Updated in any case: the lock on the row gives the history one order, and keeps the session from being removed.
      INSERT INTO sessions (session_id, owner) VALUES (w.session_id, w.owner)
        ON CONFLICT (session_id) DO UPDATE SET state = sessions.state
        RETURNING state INTO before;
      INSERT INTO history (session_id, digest, url)
        SELECT w.session_id, digest(url), url
        FROM json_array_elements_text(w.history) WITH ORDINALITY AS added (url, position)
        ORDER BY added.position
        ON CONFLICT DO NOTHING;
      CONTINUE WHEN w.state IS NULL OR w.state = before;
      UPDATE sessions SET state = w.state WHERE session_id = w.session_id;
      -- Removed only where it was a state of this session: the URL may be that of a message, or of another session.
      DELETE FROM resources
        WHERE resource_id = substr(before, 12) AND before LIKE '/resources/%'
          AND session_id = w.session_id AND run_id IS NULL;
    END LOOP;
  END $$;

  -- What the runs that have ended add to the sums of their agents. A sum of floats that overflows is an error, so it is
  -- done with a part of them (which is exact, for a power of two) and kept below the largest.
  CREATE FUNCTION add_to_figures(writes json, outcomes text[]) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO figures (agent_name, completed, failed, tokens, seconds)
      SELECT agent_name, count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
        least(sum(tokens / 1024), 1.7e305) * 1024, least(sum(seconds / 1024), 1.7e305) * 1024
      FROM ROWS FROM (json_to_recordset(writes) AS (agent_name text, status text, tokens float8, seconds float8))
        WITH ORDINALITY
      WHERE outcomes[ordinality] = 'taken' AND tokens IS NOT NULL
      GROUP BY agent_name ORDER BY agent_name COLLATE "C"
      ON CONFLICT (agent_name) DO UPDATE SET completed = figures.completed + excluded.completed,
        failed = figures.failed + excluded.failed,
        tokens = least(figures.tokens / 1024 + excluded.tokens / 1024, 1.7e305) * 1024,
        seconds = least(figures.seconds / 1024 + excluded.seconds / 1024, 1.7e305) * 1024
  $$;
`;
