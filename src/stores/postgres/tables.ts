import { needsNoAgent, waits } from './claims.ts';

export const parkedIndex = 'CREATE INDEX runs_parked ON runs (run_id) WHERE parked IS NOT NULL';

/** Which node has each run: see `RunClaims`. */
export const nodeTables = `
  ALTER TABLE runs ADD COLUMN node text COLLATE "C";
  CREATE INDEX runs_waiting ON runs (agent_name, run_id) WHERE ${waits};
  CREATE INDEX runs_waiting_for_any ON runs (run_id) WHERE ${waits} AND ${needsNoAgent};
  CREATE INDEX runs_of_node ON runs (node, run_id) WHERE node IS NOT NULL;
  -- The nodes, and the ends of their leases.
  CREATE TABLE nodes (node text COLLATE "C" PRIMARY KEY, until timestamptz NOT NULL) WITH (fillfactor = 10);
`;

/**
 * The tables. All texts are compared by byte (collation "C"), so that an index serves joins between tables. Ids are
 * UUIDs of version 7; by byte, they are ordered by time, and so are ISO dates.
 */
export const tables = `
  CREATE TABLE runs (
    run_id text COLLATE "C" PRIMARY KEY,
    agent_name text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    principal text,
    targets text,
    readers text,
    trace text,
    epoch integer NOT NULL,
    status text COLLATE "C" NOT NULL,
    status_at text COLLATE "C" NOT NULL,
    title text NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    finished_at text COLLATE "C",
    tier text COLLATE "C" NOT NULL,
    attempts integer NOT NULL,
    queued_at text COLLATE "C",
    due text COLLATE "C",
    on_disconnect text COLLATE "C" NOT NULL,
    last integer NOT NULL,
    snapshot integer NOT NULL,
    input text NOT NULL,
    rests_at text,
    parked text
  -- Leaves room on the page for the next version of each row, so that appending to a log updates no index.
  ) WITH (fillfactor = 50);
  CREATE INDEX runs_of_session ON runs (session_id, run_id);
  CREATE INDEX runs_of_agent ON runs (agent_name, run_id);
  CREATE INDEX runs_of_agent_by_status ON runs (agent_name, status, run_id);
  CREATE INDEX runs_of_owner ON runs (owner, run_id) WHERE owner IS NOT NULL;
  CREATE INDEX runs_of_owner_by_status ON runs (owner, status, run_id) WHERE owner IS NOT NULL;
  CREATE INDEX runs_of_status ON runs (status, run_id);
  CREATE INDEX runs_unfinished ON runs (run_id) WHERE finished_at IS NULL;
  CREATE INDEX runs_unfinished_of_owner ON runs (owner) WHERE owner IS NOT NULL AND finished_at IS NULL;
  CREATE INDEX runs_unfinished_of_session ON runs (session_id, run_id) WHERE finished_at IS NULL;
  CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
  CREATE INDEX runs_by_status_time ON runs (agent_name, status, status_at, run_id);
  CREATE INDEX runs_of_owner_by_status_time ON runs (owner, agent_name, status, status_at, run_id)
    WHERE owner IS NOT NULL;
  CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
  ${parkedIndex};

  -- A row is a batch: the events first..last, one line of JSON each. The key has the last event, so that the batch
  -- after any cursor is found with one descent of the index.
  CREATE TABLE events (
    run_id text COLLATE "C" NOT NULL,
    last integer NOT NULL,
    first integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, last)
  );

  -- A row has the entries of one write, one line of JSON each.
  CREATE TABLE journal (
    run_id text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    body text NOT NULL,
    PRIMARY KEY (run_id, position)
  );

  -- Deleted runs whose events and journal are still to be cleared.
  CREATE TABLE removed (run_id text COLLATE "C" PRIMARY KEY);

  -- Idempotency-Keys.
  CREATE TABLE keys (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    after integer NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, key)
  );
  CREATE INDEX keys_by_age ON keys (created_at);

  CREATE TABLE sessions (
    session_id text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C",
    state text,
    -- When the last of its deleted runs ended, since the last sweep that examined it; it may have other runs.
    idle_since text COLLATE "C"
  );
  CREATE INDEX sessions_of_owner ON sessions (owner) WHERE owner IS NOT NULL;
  CREATE INDEX sessions_idle ON sessions (idle_since) WHERE idle_since IS NOT NULL;

  CREATE TABLE history (
    session_id text COLLATE "C" NOT NULL,
    -- Of the URL, which may be too long for an index. Keeps each URL unique without reading the others.
    digest bytea NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    url text NOT NULL,
    PRIMARY KEY (session_id, digest)
  );
  CREATE INDEX history_in_order ON history (session_id, position);

  CREATE TABLE resources (
    resource_id text COLLATE "C" PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    content_type text NOT NULL,
    body text NOT NULL
  );
  CREATE INDEX resources_of_session ON resources (session_id, run_id);

  -- The owner is empty for the sums over all runs.
  CREATE TABLE figures (
    owner text COLLATE "C" NOT NULL,
    agent_name text COLLATE "C" NOT NULL,
    completed integer NOT NULL,
    failed integer NOT NULL,
    tokens double precision NOT NULL,
    seconds double precision NOT NULL,
    PRIMARY KEY (owner, agent_name)
  );

  -- Number and outcomes of the last commit of each open store.
  CREATE TABLE commits (
    writer text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    outcomes text[] NOT NULL,
    at timestamptz NOT NULL
  -- Few rows, and every commit updates one of them, on the same page.
  ) WITH (fillfactor = 10);
`;
