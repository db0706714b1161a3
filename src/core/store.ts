import type { Message } from '../schema/message.ts';
import type { RunStatus } from '../schema/run.ts';

/** What a store knows of a run beside its log. The Run itself is the log, folded from `snapshot` on. */
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
  /** Id of the last event; 0 before the first. */
  readonly last: number;
  /** Id of the last event that carries the whole Run. */
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
  readonly content_type: string;
  readonly body: string;
}

export interface SessionRow {
  readonly session_id: string;
  /** Own resources as `/resources/{id}`, anybody else's as absolute URLs; oldest first. */
  readonly history: readonly string[];
  readonly state: string | null;
}

/** One atomic step of one run: all of it is kept, or none. */
export interface Write {
  /** The run as it is after the step. */
  readonly row: RunRow;
  /** Where the log has to end now; 0 creates the run. Anything else, or another epoch: refused. */
  readonly expect: number;
  /** The next events, ids from `expect + 1`. May be empty, when only the row or the session changes. */
  readonly lines: readonly string[];
  /** With the first write only. */
  readonly input?: readonly Message[];
  readonly resources?: readonly Resource[];
  /** Added to the run's session, which is made if it is new; URLs that it already has are not added twice. */
  readonly history?: readonly string[];
  readonly state?: string;
  /** With the write that ends the run: what it adds to its agent's figures. */
  readonly ended?: { readonly tokens: number; readonly seconds: number };
}

/** Sums over the ended runs of an agent; cancelled ones count nowhere. */
export interface AgentFigures {
  readonly agent_name: string;
  readonly completed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly seconds: number;
}

/**
 * The durable port. Every store passes `test/stores/contract.ts`.
 * What a method rejects with is the store's own error; the engine decides what it means.
 */
export interface Store {
  /** Keeps all writes in one commit. Answers for each whether it was taken; a refused one changes nothing. */
  commit(writes: readonly Write[]): Promise<boolean[]>;
  run(run_id: string): Promise<RunRow | undefined>;
  /** The input that the run was made with. */
  input(run_id: string): Promise<Message[] | undefined>;
  /** Batches with events after that id, oldest first, about `limit` events; the first may begin before it. */
  events(run_id: string, after: number, limit: number): Promise<Batch[]>;
  /** Runs that are not over, oldest first: what a start has to look after. */
  unfinished(limit: number): Promise<RunRow[]>;
  session(session_id: string): Promise<SessionRow | undefined>;
  resource(resource_id: string): Promise<Resource | undefined>;
  figures(agent_names: readonly string[]): Promise<AgentFigures[]>;
  close(): Promise<void>;
}
