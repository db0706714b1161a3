import type { Message } from '../schema/message.ts';
import type { RunStatus } from '../schema/run.ts';

/** What a store knows of a run beside its log. The Run itself is the log, folded. */
export interface RunRow {
  readonly run_id: string;
  readonly agent_name: string;
  readonly session_id: string;
  /** The principal that made the run; null while there is no authentication. */
  readonly owner: string | null;
  /** Which execution of the run writes; a write with another epoch is refused. */
  readonly epoch: number;
  readonly status: RunStatus;
  readonly created_at: string;
  readonly finished_at: string | null;
  /** Whether the run is re-entered after its process has died, or fails. */
  readonly tier: 'pinned' | 'durable';
  /** How often it was re-entered since it last got on. */
  readonly attempts: number;
  /** Since when it waits for earlier runs of its session; null when it does not. */
  readonly queued_at: string | null;
  /** When an await that nobody answers ends the run; null for never, and while nothing is awaited. */
  readonly due: string | null;
  /** What happens when its last reader leaves: `continue`, `cancel` or `grace=SECONDS`. */
  readonly on_disconnect: string;
  /** Id of the last event; 0 before the first. */
  readonly last: number;
  /** Id of the last run event; of a final run, it carries the whole Run. */
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
  /** The run that goes when this goes with it; null for what belongs to the session, as its state does. */
  readonly run_id: string | null;
  readonly content_type: string;
  readonly body: string;
}

export interface SessionRow {
  readonly session_id: string;
  /** Own resources as `/resources/{id}`, anybody else's as absolute URLs; oldest first. */
  readonly history: readonly string[];
  readonly state: string | null;
}

/** A client's Idempotency-Key and what came of the request that brought it first. */
export interface Key {
  /** What the key is for: creating runs, or resuming one of them. */
  readonly scope: string;
  readonly key: string;
  /** Of the request's body, without the mode. */
  readonly hash: string;
  readonly run_id: string;
  /** Where the answer begins in the run's log. */
  readonly after: number;
  readonly created_at: string;
}

/** This write can never be taken: a value that the store cannot keep, or one that is too large for it. */
interface Rejected {
  /** What the store says against it; goes to the log, never to a client. */
  readonly rejected: unknown;
}

/**
 * What became of a write. `fenced`: the run has another epoch, another end, or is final. `key_used`: its
 * Idempotency-Key is kept already. `session_busy`: its condition `when` does not hold. Only `taken` changes anything.
 */
export type Outcome = 'taken' | 'fenced' | 'key_used' | 'session_busy' | Rejected;

export type When = 'alone' | 'first' | 'last';

/** One atomic step of one run: all of it is kept, or none. */
export interface Write {
  /** The run as it is after the step. */
  readonly row: RunRow;
  /** Where the log has to end now; 0 creates the run. Anything else, or another epoch: `fenced`. */
  readonly expect: number;
  /** The epoch that the run has now, where the step takes it over with a new one. Default: the row's. */
  readonly from?: number;
  /** The row is as it was but for `last`: most writes are, and a store can do less for them. */
  readonly grown?: boolean;
  /**
   * A condition on the other runs of the session that are not final, checked in the same atomic step: there are none
   * (`alone`), none with a smaller id (`first`), none with a larger one (`last`). Queued runs count like all others.
   * The outcome is `session_busy` where it does not hold.
   */
  readonly when?: When;
  /** The next events, ids from `expect + 1`. May be empty, when only the row or the session changes. */
  readonly lines: readonly string[];
  /** With the first write only, which makes the run, and its session if that is new. */
  readonly input?: readonly Message[];
  /** What a durable run's agent was given, for replay: one line of JSON each. */
  readonly journal?: readonly string[];
  /** The answer is `key_used` where the same scope and key are kept already and not older than `fresh`. */
  readonly key?: Key & { readonly fresh: string };
  readonly resources?: readonly Resource[];
  /** Added to the run's session; URLs that it already has are not added twice. */
  readonly history?: readonly string[];
  /** URL of the session's state from now on. The resource that was its state before is removed. */
  readonly state?: string;
  /** With the write that ends the run: what it adds to its agent's figures. */
  readonly ended?: { readonly tokens: number; readonly seconds: number };
}

/** What a write may carry beside events. */
export type Extras = Pick<Write, 'resources' | 'history' | 'state' | 'ended' | 'journal' | 'key'>;

export interface RunFilter {
  readonly agent_name?: string;
  readonly session_id?: string;
  readonly status?: RunStatus;
}

/** Sums over the ended runs of an agent; cancelled ones count nowhere. */
export interface AgentFigures {
  readonly agent_name: string;
  readonly completed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly seconds: number;
}

/** That a process has written to a run: a hint, which may come twice, late or never. */
export interface RunNotification {
  readonly run_id: string;
  /** Of the row, after the write. */
  readonly epoch: number;
  readonly last: number;
  /** Whether the run is over. */
  readonly final: boolean;
}

/** What `sweep` clears, beside what removed runs and sessions have left: what is older than these times. */
export interface Retention {
  /** Runs that ended before. */
  readonly runs?: string;
  /** Idempotency-Keys that were kept before. */
  readonly keys: string;
  /** Sessions without runs, of which nothing was written since. */
  readonly sessions?: string;
}

/**
 * The durable port. Every store passes `test/stores/contract.ts`.
 * What a method rejects with is the store's own error; the engine decides what it means.
 */
export interface Store {
  /**
   * Keeps all writes in one commit, and answers for each what became of it, in their order.
   * Rejects only where nothing of the commit was taken and it may be tried again, whatever the cause. A store that
   * cannot know whether it was taken (an answer was lost) asks again, by a number, until it knows.
   */
  commit(writes: readonly Write[]): Promise<Outcome[]>;
  run(run_id: string): Promise<RunRow | undefined>;
  /** The input that the run was made with; a store may forget it when the run is over. */
  input(run_id: string): Promise<Message[] | undefined>;
  /** Batches with events after that id, oldest first, about `limit` events; the first may begin before it. */
  events(run_id: string, after: number, limit: number): Promise<Batch[]>;
  /** The lines of a run's journal, as they were written. */
  journal(run_id: string): Promise<string[]>;
  /** Runs, newest first; those made before the run `before`, where it is given. */
  runs(filter: RunFilter, before: string | undefined, limit: number): Promise<RunRow[]>;
  /** Runs that are not over, oldest first; those made after the run `after`, of one session or of all. */
  unfinished(session_id: string | undefined, after: string, limit: number): Promise<RunRow[]>;
  /** Runs whose `due` has passed. */
  due(now: string, limit: number): Promise<RunRow[]>;
  /** How many runs of a session are not over. */
  count(session_id: string): Promise<number>;
  key(scope: string, key: string): Promise<Key | undefined>;
  session(session_id: string): Promise<SessionRow | undefined>;
  /** Of many at once: one question to the server. Undefined in the place of each that is not kept. */
  resources(resource_ids: readonly string[]): Promise<(Resource | undefined)[]>;
  figures(agent_names: readonly string[]): Promise<AgentFigures[]>;
  /**
   * Removes a run, with its messages in the session; its log goes bit by bit, with `sweep`. Answers false, and changes
   * nothing, where the run is not final.
   */
  remove(run_id: string): Promise<boolean>;
  /**
   * Removes a session with its messages, its state and all its runs: it is unknown at once, and what is left goes bit
   * by bit, with `sweep`. Answers false, and changes nothing, where one of its runs is not final.
   */
  removeSession(session_id: string): Promise<boolean>;
  /** Clears a little of what is old. Answers whether there is more. One call takes a few milliseconds at most. */
  sweep(before: Retention): Promise<boolean>;
  /**
   * Only of a store that several processes share: calls back when any of them, this one too, has written to runs.
   * With nothing where it may have missed some: anything may have moved. Returns how to end it.
   */
  watch?(moved: (moves: readonly RunNotification[] | undefined) => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
