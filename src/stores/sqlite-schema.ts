import type Database from 'better-sqlite3';

/** What few runs are, as a term that a query has to repeat for their index to be used. */
export const rare = "status <> 'completed' AND status <> 'in-progress' AND status <> 'created'";

/** One step a version; a step that has been released never changes, a new one is added. */
const steps: readonly string[] = [
  `
  CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    agent_name TEXT NOT NULL,
    session_id TEXT NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    tier TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    queued_at TEXT,
    due TEXT,
    on_disconnect TEXT NOT NULL,
    last INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    input TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- run_id is a UUID of version 7, so its order is that of time; each index ends with it.
  CREATE INDEX runs_of_session ON runs (session_id);
  CREATE INDEX runs_of_agent ON runs (agent_name);
  -- Of the others there are few, or nearly all; each write to an index is a part of what a run costs.
  CREATE INDEX runs_of_status ON runs (status) WHERE status IN ('awaiting', 'cancelling', 'cancelled', 'failed');
  CREATE INDEX runs_unfinished ON runs (run_id) WHERE finished_at IS NULL;
  CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
  CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
  CREATE TABLE journal (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX journal_of_run ON journal (run_id);
  CREATE TABLE keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    hash TEXT NOT NULL,
    run_id TEXT NOT NULL,
    after INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX keys_by_age ON keys (created_at);
  -- Runs that are gone but for their logs, which are cleared bit by bit.
  CREATE TABLE removed (run_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  -- A row is a batch: the events first..last, one line of JSON each. Found by its last event, so that
  -- a cursor anywhere is one step down the index.
  CREATE TABLE events (
    run_id TEXT NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, last)
  ) STRICT, WITHOUT ROWID;
  -- What was appended lately; see sqlite-log.ts.
  CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    owner TEXT,
    state TEXT,
    created_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE history (
    position INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    url TEXT NOT NULL,
    UNIQUE (session_id, url)
  ) STRICT;
  CREATE TABLE resources (
    resource_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    run_id TEXT,
    content_type TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX resources_of_session ON resources (session_id, run_id);
  CREATE TABLE figures (
    agent_name TEXT PRIMARY KEY,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tokens REAL NOT NULL,
    seconds REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- With IN, SQLite made a table for its list whenever it wrote a run, which cost more than the write itself.
  DROP INDEX runs_of_status;
  CREATE INDEX runs_of_status ON runs (status) WHERE ${rare};
  -- Long rows have rowids, and lie in the order in which they came. Without, one of 1 KB has a page of its own,
  -- and one that comes between others splits theirs.
  ALTER TABLE events RENAME TO events_before;
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  INSERT INTO events (run_id, last, first, body) SELECT run_id, last, first, body FROM events_before;
  DROP TABLE events_before;
  CREATE UNIQUE INDEX events_of_run ON events (run_id, last);
  -- A history has one tree in place of two, and says what is there because of a run: its messages are found here.
  ALTER TABLE history RENAME TO history_before;
  CREATE TABLE history (
    session_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    url TEXT NOT NULL,
    run_id TEXT,
    PRIMARY KEY (session_id, position)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO history (session_id, position, url, run_id)
    SELECT one.session_id, position, url, run_id FROM history_before AS one LEFT JOIN resources
    ON resource_id = substr(url, 12) AND url = '/resources/' || resource_id AND resources.session_id = one.session_id
    ORDER BY one.session_id, position;
  DROP TABLE history_before;
  ALTER TABLE resources RENAME TO resources_before;
  CREATE TABLE resources (
    position INTEGER PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    run_id TEXT,
    content_type TEXT NOT NULL,
    body TEXT NOT NULL,
    listed INTEGER NOT NULL
  ) STRICT;
  INSERT INTO resources (resource_id, session_id, run_id, content_type, body, listed)
    SELECT resource_id, session_id, run_id, content_type, body, 0 FROM resources_before;
  DROP TABLE resources_before;
  UPDATE resources SET listed = 1 WHERE resource_id IN (SELECT substr(url, 12) FROM history WHERE run_id IS NOT NULL);
  -- Only what no history leads to, as a session's states.
  CREATE INDEX resources_unlisted ON resources (session_id, run_id) WHERE listed = 0;
  `,
];

/** Brings a file to a version, the newest by default, all steps in one transaction. @throws Error for a newer file */
export function migrate(db: Database.Database, to = steps.length): void {
  const upgrade = db.transaction(() => {
    const version = Number(db.pragma('user_version', { simple: true }));
    if (version > steps.length) {
      throw new Error(`${db.name} was written by a newer Rivulet (version ${version}, this one knows ${steps.length})`);
    }
    for (const step of steps.slice(version, to)) db.exec(step);
    db.pragma(`user_version = ${to}`);
  });
  upgrade.immediate();
}
