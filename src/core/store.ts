import type { RunStatus } from '../schema/run.ts';
import type { NewDelivery, Outbox } from './outbox.ts';
import type { RunInput } from './request.ts';

/** The row of a run, which a store keeps beside its log. The Run itself is folded from the log. */
export interface RunRow {
  readonly run_id: string;
  readonly agent_name: string;
  /** The session's key (`sessionKey`): its owner and the id that clients use. So in this whole port. */
  readonly session_id: string;
  /** The owner (`ownerOf`) of the run and its session; null where it was made without authentication. */
  readonly owner: string | null;
  /** The principal that made the run, as JSON; null where it was made without authentication. */
  readonly principal: string | null;
  /** What gets its changes of status (`PushTarget`), as JSON of a list; null for none. See `Store.setTargets`. */
  readonly targets: string | null;
  /** What the run's next span belongs to (`Traces`), as JSON; null without traces. */
  readonly trace: string | null;
  /** The number of the execution that may write (a fencing token); a write with another epoch is fenced. */
  readonly epoch: number;
  readonly status: RunStatus;
  /** When the run got this status; for a final one, the same as `finished_at`. */
  readonly status_at: string;
  /** The beginning of the input's text, for lists. */
  readonly title: string;
  readonly created_at: string;
  readonly finished_at: string | null;
  /** `durable`: the run is re-entered after its process has died. `pinned`: it fails then. */
  readonly tier: 'pinned' | 'durable';
  /** How often the run was re-entered without progress. */
  readonly attempts: number;
  /** When the run was queued behind earlier runs of its session; null if it is not queued. */
  readonly queued_at: string | null;
  /** When an await without a reply ends the run; null for never, and while the run does not await. */
  readonly due: string | null;
  /**
   * Since when the run is in the store alone, and no process has to execute it: its agent waits for nothing but a reply, or
   * the run is parked. Null otherwise.
   */
  readonly rests_at: string | null;
  /**
   * Why a run is parked: its agent did not repeat what the run has recorded. Null otherwise. A parked run rests, whatever
   * its status, until it is tried again.
   */
  readonly parked: string | null;
  /** What happens when the last client disconnects: `continue`, `cancel` or `grace=SECONDS`. */
  readonly on_disconnect: string;
  /** The id of the last event; 0 before the first. */
  readonly last: number;
  /**
   * The id of the last run event, which for a final run carries the whole Run. Readers look for the event that settles a
   * run only up to here.
   */
  readonly snapshot: number;
}

/** Events that were appended together: `lines[i]` is the JSON of event `first + i`. */
export interface Batch {
  readonly first: number;
  readonly lines: readonly string[];
}

export interface Resource {
  readonly resource_id: string;
  readonly session_id: string;
  /** The run with which the resource is removed; null if it belongs to the session, as a state does. */
  readonly run_id: string | null;
  readonly content_type: string;
  readonly body: string;
}

export interface SessionRow {
  readonly session_id: string;
  /** Resources of this store as `/resources/{id}`, all others as absolute URLs; oldest first. */
  readonly history: readonly string[];
  readonly state: string | null;
}

/** A client's Idempotency-Key, and the result of its first request. */
export interface Key {
  /** The owner, and the kind of request: creating runs, or resuming one of them. */
  readonly scope: string;
  readonly key: string;
  /** The hash of the request's body, without the mode. */
  readonly hash: string;
  readonly run_id: string;
  /** The cursor at which the response begins in the run's log. */
  readonly after: number;
  readonly created_at: string;
}

/** The store can never take this write: a value is too large for it, or cannot be stored. */
export interface Rejected {
  /** The store's error, for the server's log, never for a client. */
  readonly rejected: unknown;
}

/** The run has other targets than the row of the write: these. The writer repeats the write with them. */
export interface TargetsChanged {
  readonly targets: string | null;
}

/**
 * The outcome of a write. `fenced`: the run has another epoch or another last event, or is final. `key_used`: its
 * Idempotency-Key is stored already. `session_busy`: its condition `when` does not hold. `TargetsChanged`: only of a
 * write with events that is not `grown`, so that none of the stored targets misses a change of status. Only `taken`
 * changes the store.
 */
export type Outcome = 'taken' | 'fenced' | 'key_used' | 'session_busy' | TargetsChanged | Rejected;

export type When = 'alone' | 'first' | 'last';

/** The row after a write, without its `last`: see `lastAfter`. */
export type WrittenRow = Omit<RunRow, 'last'>;

/** One atomic change of one run: the store takes all of it, or nothing. */
export interface Write {
  /** Writes share it while nothing in it changes: a copy for each token would be a tenth of what the token allocates. */
  readonly row: WrittenRow;
  /** The id of the log's last event before the write; 0 creates the run. Otherwise the outcome is `fenced`. */
  readonly expect: number;
  /** The run's epoch before the write, if the write raises it. Default: the row's. */
  readonly from?: number;
  /** Only `last` changes in the row. Most writes are like that, and a store can handle them faster. See `forwardsOnly`. */
  readonly grown?: boolean;
  /**
   * A condition on the other runs of the session that are not final, checked atomically with the write: there are none
   * (`alone`), none with a smaller id (`first`), none with a larger id (`last`). Queued runs count as well. Where the
   * condition does not hold, the outcome is `session_busy`.
   */
  readonly when?: When;
  /** The next events, ids from `expect + 1`. May be empty, when only the row or the session changes. */
  readonly lines: readonly string[];
  /** In the first write only, which creates the run, and its session if that is new. */
  readonly input?: RunInput;
  /** Entries of the journal: one line of JSON each. */
  readonly journal?: readonly string[];
  /** The outcome is `key_used` if the same scope and key are stored already, and not older than `fresh`. */
  readonly key?: Key & { readonly fresh: string };
  /** A resource of the run replaces the run's earlier one with its id. */
  readonly resources?: readonly Resource[];
  /** Added to the run's session; URLs that it already has are not added twice. */
  readonly history?: readonly string[];
  /** The URL of the session's new state. The resource of the old state is removed. */
  readonly state?: string;
  /** Webhooks that report the change, in the order in which they are to be sent to each URL. */
  readonly deliveries?: readonly NewDelivery[];
  /** In the write that ends the run: what the run adds to its agent's figures. */
  readonly ended?: { readonly tokens: number; readonly seconds: number };
}

/** The id of the log's last event after a write. */
export const lastAfter = ({ expect, lines }: Pick<Write, 'expect' | 'lines'>): number => expect + lines.length;

/**
 * Whether a write only adds to the journal. So a node leaves something for the node that executes the run: it must not
 * change the row, in which that node may write at the same time.
 */
export const forwardsOnly = ({ grown, lines }: Write): boolean => grown === true && lines.length === 0;

/** The row after a write. */
export const rowAfter = (write: Write): RunRow => ({ ...write.row, last: lastAfter(write) });

/**
 * Whether a write only adds events, and entries of the journal that come with them. Most writes do, so stores handle them
 * apart: all that they need of the run is its id and its epoch.
 */
export const appendsOnly = ({
  grown,
  from,
  lines,
  when,
  resources,
  history,
  state,
  ended,
  key,
  deliveries,
}: Write): boolean =>
  grown === true &&
  lines.length > 0 &&
  !(from !== undefined || when || resources || history || state !== undefined || ended || key || deliveries);

/** The data that a write may carry beside events. */
export type Extras = Pick<Write, 'resources' | 'history' | 'state' | 'ended' | 'journal' | 'key' | 'deliveries'>;

export interface RunFilter {
  readonly agent_name?: string;
  readonly session_id?: string;
  readonly status?: RunStatus;
  readonly owner?: string;
  /** Only parked runs. */
  readonly parked?: true;
}

/** Some runs, for lists by the time of their status. */
export interface StatusFilter {
  /** Default: all that have runs. */
  readonly agent_names?: readonly string[] | undefined;
  readonly session_id?: string;
  readonly owner?: string;
  /** Default: all. */
  readonly statuses?: readonly RunStatus[];
  /** Runs that got their status at this time or later. */
  readonly since?: string;
}

/** Where a page of a list by the time of the status ends. */
export type StatusPosition = Pick<RunRow, 'status_at' | 'run_id'>;

/** The runs that have a status which is not final. */
export interface OpenRuns {
  readonly status: RunStatus;
  readonly count: number;
  /** The id of the first one; ids carry the time at which they were made. */
  readonly oldest: string;
}

/** Sums over the ended runs of an agent, without cancelled ones. */
export interface AgentFigures {
  readonly agent_name: string;
  readonly completed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly seconds: number;
}

/** A notification that a process has written to a run. It may come twice, late or never. */
export interface RunNotification {
  readonly run_id: string;
  /** The row's epoch after the write. */
  readonly epoch: number;
  readonly last: number;
  /** Whether the run is final. */
  readonly final: boolean;
  /** Whether more than `last` may have changed in the row, such as the status. */
  readonly changed: boolean;
  /** Whether a write has only added to the journal: it has something for the node that executes the run. */
  readonly forwarded: boolean;
}

/** `sweep` removes what is older than these times. It also clears the data of removed runs and sessions. */
export interface Retention {
  /** Runs that ended before this time. */
  readonly runs?: string;
  /** Idempotency-Keys that were stored before this time. */
  readonly keys: string;
  /** Deliveries from before this time that are not pending, and failures of URLs without an attempt since. */
  readonly deliveries?: string;
  /** Sessions without runs, with no write since this time. */
  readonly sessions?: string;
}

/**
 * The port of durable stores. Every store passes `test/stores/contract.ts`. Methods reject with the store's own errors,
 * which the engine interprets.
 */
export interface Store extends Outbox {
  /**
   * Commits all writes together, and resolves to the outcome of each, in their order. Rejects only if nothing was
   * committed, so that the caller may retry. A store that does not know that, because a response was lost, asks its
   * server for the commit's number until it knows. A commit without writes rejects where the store takes no writes, such
   * as for a full disk, and changes nothing that this port reads.
   */
  commit(writes: readonly Write[]): Promise<Outcome[]>;
  run(run_id: string): Promise<RunRow | undefined>;
  /** The run's input. */
  input(run_id: string): Promise<RunInput | undefined>;
  /**
   * Batches with events after an id, oldest first: about `limit` events, or fewer where they are long. The first batch may
   * begin before the id. A page ends before an event of `fullChars` or more, unless that is its first.
   */
  events(run_id: string, after: number, limit: number): Promise<Batch[]>;
  /** The lines of a run's journal, in the order of the writes. */
  journal(run_id: string): Promise<string[]>;
  /** Runs, newest first; only those made before the run `before`, if it is given. */
  runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]>;
  /**
   * Runs by the time of their status, the newest first and then by id; only those after a position, if it is given. With
   * a session, the cost grows with the runs of the session. Otherwise a page costs some rows for each agent and status,
   * and at most a look at each run that is not final.
   */
  runsByStatusTime(filter: StatusFilter, after: StatusPosition | undefined, limit: number): Promise<RunRow[]>;
  /** The number of runs that match. It may cost as much as to read an index of them. */
  countRuns(filter: StatusFilter): Promise<number>;
  /** Runs that are not final, oldest first; only those made after the run `after`, of one session or of all. */
  unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]>;
  /** Runs whose `due` has passed. */
  due(now: string, limit: number): Promise<RunRow[]>;
  /** The number of runs of a session that are not final. */
  count(session_id: string): Promise<number>;
  /** The runs that are not final, of one owner or of all, by status; a status without runs is left out. */
  openRuns(owner?: string): Promise<OpenRuns[]>;
  key(scope: string, key: string): Promise<Key | undefined>;
  /**
   * Replaces the targets of a run, whatever its epoch, last event and status. Returns false, and changes nothing, where
   * they are no longer `before`. No write changes them, except the one that creates the run.
   */
  setTargets(run_id: string, before: string | null, targets: string | null): Promise<boolean>;
  session(session_id: string): Promise<SessionRow | undefined>;
  /** Several resources in one call; undefined for each that the store does not have. */
  resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]>;
  /** The figures of agents: over all runs, or over those of one owner. */
  figures(agent_names: readonly string[], owner?: string): Promise<AgentFigures[]>;
  /** The keys of some sessions of an owner. */
  sessionsOf(owner: string, limit: number): Promise<string[]>;
  /**
   * Removes a run with its messages in the session and its deliveries; `sweep` clears its log in steps. Returns false, and changes nothing,
   * if the run is not final.
   */
  remove(run_id: string): Promise<boolean>;
  /**
   * Removes a session with its messages, its state and all its runs, which lose their deliveries. It and its resources
   * are unknown at once; `sweep` clears their data in steps. Returns false, and changes nothing, if one of its runs is not final.
   */
  removeSession(session_id: string): Promise<boolean>;
  /**
   * Removes what an owner has beside its sessions and their runs: its idempotency keys, figures, deliveries and failures
   * of URLs. Called after its sessions were removed, since a store may then also overwrite what it has freed.
   */
  removeOwner(owner: string): Promise<void>;
  /** Removes some of the expired data, in a few milliseconds at most. Returns whether there is more. */
  sweep(before: Retention): Promise<boolean>;
  /**
   * Only a store that several processes share has it. Calls back when any process, including this one, has written to
   * runs; with undefined where notifications may have been missed. Returns an unsubscribe function.
   */
  watch?(notify: (notifications: readonly RunNotification[] | undefined) => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
