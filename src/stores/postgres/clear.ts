/**
 * What takes things away. Several nodes call it at the same time; what one has in hand, the others leave to it.
 * Rows to be removed are named by an array. A join with a limited query would be planned for a tenth of the table, as
 * the limit is not known when a function is planned, and would read all of it.
 */
export const clearFunctions = `
  -- Removes a run and its messages; events and journal are left to clear_logs. False where the run is not final.
  CREATE FUNCTION remove_run(which text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    WITH gone AS (
        DELETE FROM runs WHERE run_id = which AND status IN ('completed', 'failed', 'cancelled')
        RETURNING run_id, session_id, finished_at
      ),
      messages AS (
        DELETE FROM resources USING gone
        WHERE resources.session_id = gone.session_id AND resources.run_id = gone.run_id
        RETURNING resources.session_id, digest('/resources/' || resource_id)
      ),
      said AS (
        DELETE FROM history USING messages
        WHERE history.session_id = messages.session_id AND history.digest = messages.digest
      ),
      idle AS (
        UPDATE sessions SET idle_since = greatest(idle_since, gone.finished_at) FROM gone
        WHERE sessions.session_id = gone.session_id
      )
      INSERT INTO removed SELECT run_id FROM gone ON CONFLICT DO NOTHING;
    RETURN NOT EXISTS (SELECT FROM runs WHERE run_id = which);
  END $$;

  -- Removes a session with its messages and its runs; their events and journals are left to clear_logs.
  -- False where one of its runs is not final.
  CREATE FUNCTION remove_session(which text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    is_going boolean;
  BEGIN
    -- A commit that adds to the session locks this row: either what it has kept is seen below, or it comes after.
    PERFORM FROM sessions WHERE session_id = which FOR UPDATE;
    -- One statement, and so one view of all tables: what begins in the session meanwhile is not touched.
    WITH going AS (SELECT FROM runs WHERE session_id = which AND finished_at IS NULL LIMIT 1),
      gone AS (DELETE FROM runs WHERE session_id = which AND NOT EXISTS (SELECT FROM going) RETURNING run_id),
      logs AS (INSERT INTO removed SELECT run_id FROM gone ON CONFLICT DO NOTHING),
      messages AS (DELETE FROM resources WHERE session_id = which AND NOT EXISTS (SELECT FROM going)),
      said AS (DELETE FROM history WHERE session_id = which AND NOT EXISTS (SELECT FROM going)),
      session AS (DELETE FROM sessions WHERE session_id = which AND NOT EXISTS (SELECT FROM going))
      SELECT EXISTS (SELECT FROM going) INTO is_going;
    RETURN NOT is_going;
  END $$;

  -- Removes runs that ended before a time, and leaves their messages. Answers how many.
  CREATE FUNCTION clear_runs(before text, most integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH gone AS (
        DELETE FROM runs WHERE run_id = ANY (ARRAY(
          SELECT run_id FROM runs WHERE finished_at < before ORDER BY finished_at LIMIT most FOR UPDATE SKIP LOCKED
        )) RETURNING run_id, session_id, finished_at
      ),
      logs AS (INSERT INTO removed SELECT run_id FROM gone ON CONFLICT DO NOTHING),
      latest AS (SELECT session_id, max(finished_at) AS finished_at FROM gone GROUP BY session_id),
      idle AS (
        UPDATE sessions SET idle_since = greatest(
          idle_since, (SELECT finished_at FROM latest WHERE latest.session_id = sessions.session_id)
        ) WHERE session_id = ANY (ARRAY(SELECT session_id FROM latest))
      )
      SELECT count(*)::integer FROM gone
  $$;

  -- Removes sessions without runs that were left before a time. Answers at how many it has looked.
  CREATE FUNCTION clear_sessions(before text, most integer) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    one text;
    looked integer := 0;
  BEGIN
    FOR one IN
      SELECT session_id FROM sessions WHERE idle_since < before ORDER BY idle_since LIMIT most FOR UPDATE SKIP LOCKED
    LOOP
      looked := looked + 1;
      IF EXISTS (SELECT FROM runs WHERE session_id = one) THEN
        -- It is noted again when it loses one of them.
        UPDATE sessions SET idle_since = NULL WHERE session_id = one;
      ELSE
        PERFORM remove_session(one);
      END IF;
    END LOOP;
    RETURN looked;
  END $$;

  -- Removes rows of events and of journals of runs that are gone, and what is left of a run when both are empty.
  -- Answers how many runs there were.
  CREATE FUNCTION clear_logs(most integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH gone AS (SELECT run_id FROM removed ORDER BY run_id LIMIT most FOR UPDATE SKIP LOCKED),
      cleared AS (
        DELETE FROM events WHERE ctid = ANY (ARRAY(
          SELECT log.ctid FROM gone CROSS JOIN LATERAL (
            SELECT one.ctid FROM events AS one WHERE one.run_id = gone.run_id ORDER BY last LIMIT most
          ) AS log LIMIT most
        )) RETURNING 1
      ),
      forgotten AS (
        DELETE FROM journal WHERE ctid = ANY (ARRAY(
          SELECT log.ctid FROM gone CROSS JOIN LATERAL (
            SELECT one.ctid FROM journal AS one WHERE one.run_id = gone.run_id ORDER BY position LIMIT most
          ) AS log LIMIT most
        )) RETURNING 1
      ),
      done AS (
        DELETE FROM removed WHERE run_id = ANY (ARRAY(SELECT run_id FROM gone))
          AND (SELECT count(*) FROM cleared) < most AND (SELECT count(*) FROM forgotten) < most
      )
      SELECT count(*)::integer FROM gone
  $$;
`;
