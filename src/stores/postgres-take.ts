/** The function that takes the writes of a commit, as it is since version 2. */
export const take = `
  -- As before, and refuses what wants to be alone in its session and is not. Only a commit with such writes is taken in
  -- its own order, as one may end what another waits for; so it locks rows by name before it begins.
  CREATE OR REPLACE FUNCTION take(writes json, bodies text[]) RETURNS boolean[]
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    w record;
    taken boolean[] := array_fill(false, ARRAY[cardinality(bodies)]);
    said boolean := false;
    ended boolean := false;
    sessions bigint[];
    known text[];
    ordered boolean := strpos(writes::text, '"alone":true') > 0;
  BEGIN
    IF ordered THEN
      SELECT array_agg(DISTINCT hashtextextended('session ' || session_id, 1)) FILTER (WHERE alone),
          array_agg(run_id) FILTER (WHERE expect > 0)
        INTO sessions, known
        FROM json_to_recordset(writes) AS (session_id text, run_id text, expect integer, alone boolean);
      -- One at a time in a session, whatever node it comes from. Each statement sees what was committed before it
      -- began, so whoever has waited here sees below what the other has kept.
      PERFORM pg_advisory_xact_lock(session) FROM unnest(sessions) AS session ORDER BY session;
      PERFORM FROM runs WHERE run_id = ANY (known) ORDER BY run_id FOR NO KEY UPDATE;
    END IF;
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (
        run_id text, agent_name text, session_id text, owner text, epoch integer, status text, created_at text,
        finished_at text, tier text, attempts integer, queued_at text, due text, on_disconnect text, last integer,
        snapshot integer, expect integer, "from" integer, grown boolean, alone boolean, input text, journal text,
        key json, resources json, history json, state text, tokens float8
      )) WITH ORDINALITY ORDER BY CASE WHEN NOT ordered THEN run_id COLLATE "C" END, ordinality
    LOOP
      IF w.alone THEN
        CONTINUE WHEN EXISTS (
          SELECT FROM runs
          WHERE session_id = w.session_id AND run_id <> w.run_id AND finished_at IS NULL AND queued_at IS NULL
        );
      END IF;
      IF w.key IS NOT NULL THEN
        INSERT INTO keys (scope, key, hash, run_id, after, created_at)
          SELECT scope, key, hash, run_id, after, created_at FROM json_populate_record(NULL::keys, w.key)
          ON CONFLICT (scope, key) DO UPDATE SET hash = excluded.hash, run_id = excluded.run_id,
            after = excluded.after, created_at = excluded.created_at
          WHERE keys.created_at < w.key ->> 'fresh';
        CONTINUE WHEN NOT FOUND;
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
      taken[w.ordinality] := true;
      said := said OR w.history IS NOT NULL OR w.state IS NOT NULL;
      ended := ended OR w.tokens IS NOT NULL;
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
    IF said THEN
      FOR w IN
        SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (
          session_id text, owner text, created_at text, history json, state text
        )) WITH ORDINALITY
        WHERE taken[ordinality] AND (history IS NOT NULL OR state IS NOT NULL)
        ORDER BY session_id COLLATE "C", ordinality
      LOOP
        -- Updated in any case: the lock gives the history one order.
        INSERT INTO sessions (session_id, owner, state, created_at)
          VALUES (w.session_id, w.owner, w.state, w.created_at)
          ON CONFLICT (session_id) DO UPDATE SET state = coalesce(excluded.state, sessions.state);
        INSERT INTO history (session_id, url)
          SELECT w.session_id, url FROM json_array_elements_text(w.history) WITH ORDINALITY AS added (url, position)
          WHERE NOT EXISTS (
            SELECT FROM history known
            WHERE known.session_id = w.session_id AND left(known.url, 500) = left(added.url, 500)
              AND known.url = added.url
          ) ORDER BY added.position;
      END LOOP;
    END IF;
    IF ended THEN
      INSERT INTO figures (agent_name, completed, failed, tokens, seconds)
        SELECT agent_name, count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
          sum(tokens), sum(seconds)
        FROM ROWS FROM (json_to_recordset(writes) AS (agent_name text, status text, tokens float8, seconds float8))
          WITH ORDINALITY
        WHERE taken[ordinality] AND tokens IS NOT NULL
        GROUP BY agent_name ORDER BY agent_name COLLATE "C"
        ON CONFLICT (agent_name) DO UPDATE SET completed = figures.completed + excluded.completed,
          failed = figures.failed + excluded.failed, tokens = figures.tokens + excluded.tokens,
          seconds = figures.seconds + excluded.seconds;
    END IF;
    RETURN taken;
  END $$;
`;
