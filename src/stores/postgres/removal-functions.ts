import { finalList } from '../run-columns.ts';

/**
 * Functions that delete. Several nodes may call them at the same time: each skips the rows that another has locked.
 * The rows to delete are selected by an array of ids. The planner does not know the limit of a function's parameter: it
 * would plan a join with a limited query for a tenth of the table, and read all of it.
 */
export const removalFunctions = `
  -- Deletes a run, its messages and its deliveries; clear_logs deletes its events and journal. False where the run is not final.
  CREATE FUNCTION remove_run(id text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    WITH deleted AS (
        DELETE FROM runs WHERE run_id = id AND status IN (${finalList})
        RETURNING run_id, session_id, finished_at
      ),
      messages AS (
        DELETE FROM resources USING deleted
        WHERE resources.session_id = deleted.session_id AND resources.run_id = deleted.run_id
        RETURNING resources.session_id, digest('/resources/' || resource_id)
      ),
      webhooks AS (DELETE FROM deliveries USING deleted WHERE deliveries.run_id = deleted.run_id),
      listed AS (
        DELETE FROM history USING messages
        WHERE history.session_id = messages.session_id AND history.digest = messages.digest
      ),
      idle AS (
        UPDATE sessions SET idle_since = greatest(idle_since, deleted.finished_at) FROM deleted
        WHERE sessions.session_id = deleted.session_id
      )
      INSERT INTO removed SELECT run_id FROM deleted ON CONFLICT DO NOTHING;
    RETURN NOT EXISTS (SELECT FROM runs WHERE run_id = id);
  END $$;

  -- Deletes a session with its messages, its runs and their deliveries; clear_logs deletes their events and journals.
  -- False where one of its runs is not final.
  CREATE FUNCTION remove_session(id text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    is_busy boolean;
  BEGIN
    -- A commit that adds to the session locks this row: it comes before, and is visible below, or it comes after.
    PERFORM FROM sessions WHERE session_id = id FOR UPDATE;
    -- One statement, and so one snapshot of all tables: runs that begin in the session meanwhile are not touched.
    WITH unfinished AS (SELECT FROM runs WHERE session_id = id AND finished_at IS NULL LIMIT 1),
      deleted AS (DELETE FROM runs WHERE session_id = id AND NOT EXISTS (SELECT FROM unfinished) RETURNING run_id),
      logs AS (INSERT INTO removed SELECT run_id FROM deleted ON CONFLICT DO NOTHING),
      webhooks AS (DELETE FROM deliveries WHERE run_id = ANY (ARRAY(SELECT run_id FROM deleted))),
      messages AS (DELETE FROM resources WHERE session_id = id AND NOT EXISTS (SELECT FROM unfinished)),
      listed AS (DELETE FROM history WHERE session_id = id AND NOT EXISTS (SELECT FROM unfinished)),
      session AS (DELETE FROM sessions WHERE session_id = id AND NOT EXISTS (SELECT FROM unfinished))
      SELECT EXISTS (SELECT FROM unfinished) INTO is_busy;
    RETURN NOT is_busy;
  END $$;

  -- Deletes runs that ended before a time, and leaves their messages. Returns their number.
  CREATE FUNCTION clear_runs(before text, max_rows integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH deleted AS (
        DELETE FROM runs WHERE run_id = ANY (ARRAY(
          SELECT run_id FROM runs WHERE finished_at < before ORDER BY finished_at LIMIT max_rows FOR UPDATE SKIP LOCKED
        )) RETURNING run_id, session_id, finished_at
      ),
      logs AS (INSERT INTO removed SELECT run_id FROM deleted ON CONFLICT DO NOTHING),
      latest AS (SELECT session_id, max(finished_at) AS finished_at FROM deleted GROUP BY session_id),
      idle AS (
        UPDATE sessions SET idle_since = greatest(
          idle_since, (SELECT finished_at FROM latest WHERE latest.session_id = sessions.session_id)
        ) WHERE session_id = ANY (ARRAY(SELECT session_id FROM latest))
      )
      SELECT count(*)::integer FROM deleted
  $$;

  -- Deletes sessions without runs that are idle since before a time. Returns the number of sessions examined.
  CREATE FUNCTION clear_sessions(before text, max_rows integer) RETURNS integer
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    session text;
    examined integer := 0;
  BEGIN
    FOR session IN
      SELECT session_id FROM sessions WHERE idle_since < before ORDER BY idle_since LIMIT max_rows FOR UPDATE SKIP LOCKED
    LOOP
      examined := examined + 1;
      IF EXISTS (SELECT FROM runs WHERE session_id = session) THEN
        -- It becomes a candidate again when one of its runs is deleted.
        UPDATE sessions SET idle_since = NULL WHERE session_id = session;
      ELSE
        PERFORM remove_session(session);
      END IF;
    END LOOP;
    RETURN examined;
  END $$;

  -- Deletes rows of events and journals of deleted runs, and the mark of a run when both are empty.
  -- Returns the number of runs examined.
  CREATE FUNCTION clear_logs(max_rows integer) RETURNS integer
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH deleted AS (SELECT run_id FROM removed ORDER BY run_id LIMIT max_rows FOR UPDATE SKIP LOCKED),
      cleared_events AS (
        DELETE FROM events WHERE ctid = ANY (ARRAY(
          SELECT log.ctid FROM deleted CROSS JOIN LATERAL (
            SELECT events.ctid FROM events WHERE events.run_id = deleted.run_id ORDER BY last LIMIT max_rows
          ) AS log LIMIT max_rows
        )) RETURNING 1
      ),
      cleared_journal AS (
        DELETE FROM journal WHERE ctid = ANY (ARRAY(
          SELECT log.ctid FROM deleted CROSS JOIN LATERAL (
            SELECT journal.ctid FROM journal WHERE journal.run_id = deleted.run_id ORDER BY position LIMIT max_rows
          ) AS log LIMIT max_rows
        )) RETURNING 1
      ),
      done AS (
        DELETE FROM removed WHERE run_id = ANY (ARRAY(SELECT run_id FROM deleted))
          AND (SELECT count(*) FROM cleared_events) < max_rows AND (SELECT count(*) FROM cleared_journal) < max_rows
      )
      SELECT count(*)::integer FROM deleted
  $$;
`;
