import type { RunStatus } from '../../schema/run.ts';
import { deliveriesSchema } from './deliveries.ts';
import type { Database } from './driver.ts';

/** The statuses that most runs have for a moment only. */
const briefStatuses: readonly RunStatus[] = ['in-progress', 'created'];
export const isBrief = (status: RunStatus): boolean => briefStatuses.includes(status);

/** Conditions of partial indexes, which queries have to repeat. The second also leaves out the status with which most runs end. */
export const lasting = briefStatuses.map((status) => `status <> '${status}'`).join(' AND ');
export const rare = `status <> 'completed' AND ${lasting}`;

/** The terms that divide the runs of a session, as its index has them. */
export const open = '(finished_at IS NOT NULL) = 0';
export const final = '(finished_at IS NOT NULL) = 1';

/** Version of the files that this Rivulet writes. Versions 1 to 9 were never released. Later ones are upgraded. */
export const fileVersion = 13;
const oldestVersion = 10;

const parkedIndex = 'CREATE INDEX runs_parked ON runs (run_id) WHERE parked IS NOT NULL';

/** What makes a file of a version one of the next version. */
const upgrades: Readonly<Record<number, string>> = {
  10: 'ALTER TABLE runs ADD COLUMN rests_at TEXT',
  11: `ALTER TABLE runs ADD COLUMN parked TEXT; ${parkedIndex}`,
  12: 'ALTER TABLE runs ADD COLUMN readers TEXT',
};

/**
 * Each index adds to the cost of a run, because a commit costs about 7 µs for each page that it changes. So most indexes
 * are partial and contain few runs.
 */
const schema = `
  CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    agent_name TEXT NOT NULL,
    session_id TEXT NOT NULL,
    owner TEXT,
    principal TEXT,
    targets TEXT,
    readers TEXT,
    trace TEXT,
    epoch INTEGER NOT NULL,
    status TEXT NOT NULL,
    status_at TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    tier TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    queued_at TEXT,
    due TEXT,
    on_disconnect TEXT NOT NULL,
    last INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    rests_at TEXT,
    parked TEXT,
    -- What the run adds to the figures of its agent, once it has ended.
    tokens REAL,
    seconds REAL,
    -- The rows of its log refer to it by number, as those of its session do.
    number INTEGER NOT NULL,
    session INTEGER NOT NULL,
    input TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- run_id is a UUID of version 7, and so ordered by time. Each index ends with it.
  -- First the runs of a session that are not final, then the others.
  CREATE INDEX runs_of_session ON runs (session, (finished_at IS NOT NULL), run_id);
  CREATE INDEX runs_of_agent ON runs (agent_name);
  -- With IN, SQLite would create a temporary table for the list whenever it writes a run.
  CREATE INDEX runs_by_status ON runs (status) WHERE ${rare};
  CREATE INDEX runs_of_session_by_status ON runs (session, status) WHERE ${rare};
  CREATE INDEX runs_of_agent_by_status ON runs (agent_name, status) WHERE ${rare};
  CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL;
  CREATE INDEX runs_of_owner_by_status ON runs (owner, status) WHERE owner IS NOT NULL AND ${rare};
  -- Covering indexes: counts, and lists by the time of the status, do not read all these runs.
  CREATE INDEX runs_unfinished ON runs (run_id, agent_name, status, status_at, session, finished_at)
    WHERE finished_at IS NULL;
  CREATE INDEX runs_unfinished_of_owner ON runs (owner, run_id, agent_name, status, status_at, session, finished_at)
    WHERE owner IS NOT NULL AND finished_at IS NULL;
  -- Covering indexes of counts, by the time of the status. The runs that ended are ranges of the first.
  CREATE INDEX runs_by_status_time ON runs (agent_name, status, status_at, run_id, session) WHERE ${lasting};
  CREATE INDEX runs_of_owner_by_status_time ON runs (owner, agent_name, status, status_at, run_id, session)
    WHERE owner IS NOT NULL AND ${lasting};
  CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;
  ${parkedIndex};
  -- Tables with long rows have rowids, in the order of insertion. WITHOUT ROWID, a row of 1 KB would take a page of its
  -- own, and one between others would split their page.
  CREATE TABLE journal (
    position INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX journal_of_run ON journal (run);
  -- A row is a batch: the events first..last, one line of JSON each. The index has the last event, so that the batch
  -- after any cursor is found with one descent. Rows in the order of the index would save a page of a short run, but runs
  -- that overlap would write half as many more, and moved rows leave copies in the file.
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX events_of_run ON events (run, last);
  -- The newest events of all runs; see commit-log.ts.
  CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    body TEXT NOT NULL
  ) STRICT;
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
  -- Rows of a session refer to it by number.
  CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    owner TEXT,
    state TEXT,
    -- When its newest run was created, or the last of its deleted runs ended; and whether it has no runs.
    used_at TEXT NOT NULL,
    idle INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_idle ON sessions (used_at) WHERE idle = 1;
  CREATE INDEX sessions_of_owner ON sessions (owner) WHERE owner IS NOT NULL;
  -- The numbers of deleted sessions whose rows are still to be cleared. A new session may have the id of one meanwhile.
  CREATE TABLE removed_sessions (session INTEGER PRIMARY KEY) STRICT;
  -- All numbers of runs and sessions up to this one may be in use: they are reserved many at a time.
  CREATE TABLE numbers (one INTEGER PRIMARY KEY CHECK (one = 1), reserved INTEGER NOT NULL) STRICT;
  -- Messages, states and other resources. A history consists of its session's listed resources and of the URLs in
  -- the table below. Both tables take their positions from one counter, which gives a history its order.
  CREATE TABLE resources (
    position INTEGER PRIMARY KEY,
    resource_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    run_id TEXT,
    content_type TEXT NOT NULL,
    body TEXT NOT NULL,
    session INTEGER NOT NULL,
    listed INTEGER NOT NULL
  ) STRICT;
  -- A covering index: a history is read without the bodies.
  CREATE INDEX resources_listed ON resources (session, run_id, resource_id) WHERE listed = 1;
  -- Resources that no history lists, such as a session's state.
  CREATE INDEX resources_unlisted ON resources (session, run_id) WHERE listed = 0;
  -- URLs that clients named for a history. Each is listed once.
  CREATE TABLE history (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    url TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX history_of_session ON history (session, url);
  -- The owner is empty for the sums over all runs.
  CREATE TABLE figures (
    owner TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tokens REAL NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (owner, agent_name)
  ) STRICT, WITHOUT ROWID;
  -- Runs that ended up to this time are in the figures; see figures.ts.
  CREATE TABLE counted_until (one INTEGER PRIMARY KEY CHECK (one = 1), time TEXT NOT NULL) STRICT;
  -- The numbers of deleted runs whose events and journal are still to be cleared.
  CREATE TABLE removed (run INTEGER PRIMARY KEY) STRICT;
  -- The token of the process that has opened the file last. Only that process may write.
  CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), token TEXT NOT NULL) STRICT;
`;

/**
 * Creates the tables of a new file, or upgrades those of an older one, in the caller's transaction.
 * @throws Error for a file of another version
 */
export function prepareFile(db: Database, path: string): void {
  const found = db.prepare<[], { user_version: number }>('PRAGMA user_version').get()?.user_version ?? 0;
  if (found === fileVersion) return;
  if (found === 0) {
    db.exec(schema);
    db.exec(deliveriesSchema);
  } else {
    checkVersion(found, path);
    for (let version = found; version < fileVersion; version += 1) db.exec(upgrades[version] ?? '');
  }
  db.exec(`PRAGMA user_version = ${fileVersion}`);
}

/** @throws Error for a version that this Rivulet can neither use nor migrate */
export function checkVersion(found: number, path: string): void {
  if (found >= oldestVersion && found <= fileVersion) return;
  if (found > fileVersion) {
    throw new Error(`${path} was written by a newer Rivulet (version ${found}, this one knows ${fileVersion})`);
  }
  throw new Error(`${path} was written before Rivulet's first release (version ${found}); use another file`);
}
