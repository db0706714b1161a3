import { take } from './postgres-take.ts';

/** One step a version; a step that has been released never changes, a new one is added. */
export const steps: readonly string[] = [
  `
  -- Ids and times are compared by byte: a UUID of version 7 is ordered by time, and so is an ISO date.
  CREATE TABLE runs (
    run_id text COLLATE "C" PRIMARY KEY,
    agent_name text NOT NULL,
    session_id text NOT NULL,
    owner text,
    epoch integer NOT NULL,
    status text NOT NULL,
    created_at text NOT NULL,
    finished_at text COLLATE "C",
    tier text NOT NULL,
    attempts integer NOT NULL,
    queued_at text,
    due text COLLATE "C",
    on_disconnect text NOT NULL,
    last integer NOT NULL,
    snapshot integer NOT NULL,
    input text NOT NULL
  -- Room for the next version of each row on its page: then the growth of a log touches no index.
  ) WITH (fillfactor = 50);
  CREATE INDEX runs_of_session ON runs (session_id, run_id);
  CREATE INDEX runs_of_agent ON runs (agent_name, run_id);
  CREATE INDEX runs_of_status ON runs (status, run_id);
  CREATE INDEX runs_unfinished ON runs (run_id) WHERE finished_at IS NULL;
  CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
  CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
  CREATE TABLE journal (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    body text NOT NULL
  );
  CREATE INDEX journal_of_run ON journal (run_id, position);
  CREATE TABLE keys (
    scope text NOT NULL,
    key text NOT NULL,
    hash text NOT NULL,
    run_id text NOT NULL,
    after integer NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, key)
  );
  CREATE INDEX keys_by_age ON keys (created_at);
  -- Runs that are gone but for their logs, which are cleared bit by bit.
  CREATE TABLE removed (run_id text PRIMARY KEY);
  -- A row is a batch: the events first..last, one line of JSON each. Found by its last event, so that
  -- a cursor anywhere is one step down the index.
  CREATE TABLE events (
    run_id text NOT NULL,
    last integer NOT NULL,
    first integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, last)
  );
  CREATE TABLE sessions (
    session_id text PRIMARY KEY,
    owner text,
    state text,
    created_at text NOT NULL
  );
  CREATE TABLE history (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text NOT NULL,
    url text NOT NULL
  );
  CREATE INDEX history_of_session ON history (session_id, position);
  -- An entry of an index is limited, a URL is not.
  CREATE INDEX history_by_url ON history (session_id, left(url, 500));
  CREATE TABLE resources (
    resource_id text PRIMARY KEY,
    session_id text NOT NULL,
    run_id text,
    content_type text NOT NULL,
    body text NOT NULL
  );
  CREATE INDEX resources_of_session ON resources (session_id, run_id);
  CREATE TABLE figures (
    agent_name text COLLATE "C" PRIMARY KEY,
    completed integer NOT NULL,
    failed integer NOT NULL,
    tokens double precision NOT NULL,
    seconds double precision NOT NULL
  );

  -- A commit in one round trip: bodies[n] are the events of the nth write. Answers for each whether it was taken.
  -- Rows are locked by name, and those that nodes share come last: two nodes that locked the same ones in another
  -- order would wait for each other.
  CREATE FUNCTION take(writes json, bodies text[]) RETURNS boolean[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    w record;
    taken boolean[] := array_fill(false, ARRAY[cardinality(bodies)]);
    said boolean := false;
    ended boolean := false;
  BEGIN
    FOR w IN
      SELECT * FROM ROWS FROM (json_to_recordset(writes) AS (
        run_id text, agent_name text, session_id text, owner text, epoch integer, status text, created_at text,
        finished_at text, tier text, attempts integer, queued_at text, due text, on_disconnect text, last integer,
        snapshot integer, expect integer, "from" integer, grown boolean, input text, journal text, key json,
        resources json, history json, state text, tokens float8
      )) WITH ORDINALITY ORDER BY run_id COLLATE "C", ordinality
    LOOP
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
  `,
  `
  -- The last parcel of each open store, by its number, and the answer to it.
  CREATE TABLE commits (
    writer text PRIMARY KEY,
    number bigint NOT NULL,
    taken boolean[] NOT NULL,
    at timestamptz NOT NULL
  -- There are few rows, and every commit writes one of them again, on the same page.
  ) WITH (fillfactor = 10);

  -- Takes a parcel once, however often it comes.
  CREATE FUNCTION keep(who text, nth bigint, writes json, bodies text[]) RETURNS boolean[]
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    last record;
    answer boolean[];
  BEGIN
    -- The parcel may have come before, over a connection that was lost, and may still be at work: what it has kept
    -- is seen only by a statement that begins when it is done.
    PERFORM pg_advisory_xact_lock(hashtextextended(who, 0));
    SELECT number, taken INTO last FROM commits WHERE writer = who;
    IF last.number = nth THEN RETURN last.taken; END IF;
    IF last.number > nth THEN RAISE EXCEPTION 'a parcel that is out of date'; END IF;
    answer := take(writes, bodies);
    IF last.number IS NULL THEN
      INSERT INTO commits (writer, number, taken, at) VALUES (who, nth, answer, now());
    ELSE
      UPDATE commits SET number = nth, taken = answer, at = now() WHERE writer = who;
    END IF;
    RETURN answer;
  END $$;

  -- Who is at work in a session is asked before each run that wants to be alone, however many are over.
  CREATE INDEX runs_unfinished_of_session ON runs (session_id, run_id) WHERE finished_at IS NULL;
  ${take}`,
];
