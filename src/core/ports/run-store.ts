import type { RunStatus } from '../../schema/run.ts';
import type { RunInput } from '../request.ts';
import type { NewDelivery } from './outbox.ts';
import type { Resource } from './session-store.ts';

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
  /** What gets its changes of status (`PushTarget`), as JSON of a list; null for none. See `RunStore.compareAndSet`. */
  readonly targets: string | null;
  /** The nodes that have readers of the run (`ReaderNode`), as JSON of a list; null for none. See `RunStore.compareAndSet`. */
  readonly readers: string | null;
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

/** The columns that any node may change, whichever executes the run. */
export const sharedColumns = ['targets', 'readers'] as const satisfies readonly (keyof RunRow)[];
export type SharedColumn = (typeof sharedColumns)[number];
export type SharedValue = RunRow[SharedColumn];

/** Events that were appended together: `lines[i]` is the JSON of event `first + i`. */
export interface Batch {
  readonly first: number;
  readonly lines: readonly string[];
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
  /** Writes share it while nothing in it changes. */
  readonly row: WrittenRow;
  /** The id of the log's last event before the write; 0 creates the run. Otherwise the outcome is `fenced`. */
  readonly expect: number;
  /** The run's epoch before the write, if the write raises it. Default: the row's. */
  readonly from?: number;
  /** Only `last` changes in the row, as in most writes. See `forwardsOnly`. */
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
  /**
   * The node that has the run after this write; null for none. Default: the same as before, and none after the run's end.
   * Only of a write that is not `grown`. Stores of one process ignore it. See `RunClaims`.
   */
  readonly node?: string | null;
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

/** What a write may have that stores do not handle with the events alone. */
const others = ['when', 'resources', 'history', 'state', 'ended', 'key', 'deliveries'] as const;

/**
 * Whether a write only adds events, and entries of the journal that come with them. Stores handle such writes apart: all
 * that they need of the run is its id and its epoch.
 */
export const appendsOnly = (write: Write): boolean =>
  write.grown === true &&
  write.lines.length > 0 &&
  write.from === undefined &&
  others.every((name) => write[name] === undefined);

/** The data that a write may carry beside events. */
export type Extras = Pick<
  Write,
  'resources' | 'history' | 'state' | 'ended' | 'journal' | 'key' | 'deliveries' | 'node'
>;

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
  /** Whether the run waits for a node: see `waitsAfter`. */
  readonly waits: boolean;
}

/** In place of a run's id: the changes of status of all runs, without their tokens. */
export const allChanges = 'changes';

/** A subscription to the notifications of a shared store. */
export interface Watch {
  /**
   * Subscribes to every write to a run, or to `allChanges`. Resolves when notifications of it arrive, so that the caller
   * misses none where it reads the run afterwards. Followed twice, it has to be unfollowed twice.
   */
  follow(topic: string): Promise<void>;
  /** Notifications may arrive for a while after this. */
  unfollow(topic: string): void;
  close(): Promise<void>;
}

/** The part of a store that keeps runs and their logs. Every change of a run is a write of a commit. */
export interface RunStore {
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
  key(scope: string, key: string): Promise<Key | undefined>;
  /**
   * Replaces the targets or the readers of a run, whatever its epoch, last event and status. Returns false, and changes
   * nothing, where they are no longer `before`. No write changes them, except the one that creates the run.
   */
  compareAndSet(run_id: string, column: SharedColumn, before: SharedValue, after: SharedValue): Promise<boolean>;
  /**
   * Removes a run with its messages in the session and its deliveries; `sweep` clears its log in steps. Returns false, and
   * changes nothing, if the run is not final.
   */
  remove(run_id: string): Promise<boolean>;
  /**
   * Only a store that several processes share has it. Calls back when any process, including this one, has written what
   * every node hears of (`isForAllNodes`), or has written to a run that is followed; with undefined where notifications
   * may have been missed.
   */
  watch?(notify: (notifications: readonly RunNotification[] | undefined) => void): Promise<Watch>;
  /** Rejects where notifications would not arrive, as behind a pooler that drops them. */
  checkNotifications?(): Promise<void>;
}
