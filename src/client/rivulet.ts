import type { Observable } from 'rxjs';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsQuery, DiagnosticsResponse, ErasedData, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Run, RunDetails, RunSummary } from '../schema/run.ts';
import type { Session, SessionInput } from '../schema/session.ts';
import type { Webhook } from '../schema/webhook.ts';
import type { Events } from './events.ts';
import type { FollowOptions, RunsFilter } from './follow.ts';
import type { Input, Reply } from './input.ts';

export interface CallOptions {
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface OnceOptions extends CallOptions {
  /** The same key and body make one run, or one resume, for a day. */
  readonly idempotency_key?: string;
}

export interface StartOptions extends OnceOptions {
  readonly session_id?: string;
  /** A session of another server's to carry on. */
  readonly session?: SessionInput;
  /** What to do where the session has a run that is not final. Default: the agent's, or `parallel`. */
  readonly if_busy?: 'parallel' | 'enqueue' | 'reject' | 'interrupt';
  /** What happens to the run when its last reader disconnects; the number is in seconds. Default: the agent's, or `continue`. */
  readonly on_disconnect?: 'continue' | 'cancel' | `grace=${number}`;
  /** Where the server POSTs the changes of the run's status. Default: the agent's, or nowhere. */
  readonly webhook?: Webhook;
}

export interface ResumeOptions extends OnceOptions {
  /** The channel of the reply, such as `slack`, which the run records. Default: `api` of a client, `in-process` of a runtime. */
  readonly channel?: string;
}

export interface AgainOptions extends OnceOptions {
  /** Id of the last event that the new run repeats. Default 0: it begins anew with the same input. */
  readonly after?: number;
}

export interface RunOptions extends StartOptions, FollowOptions {}

export interface WatchOptions extends FollowOptions {
  /** Id of the last event already seen: the nth event of a run has the id n. Default 0: from the beginning. */
  readonly after?: number;
}

export interface WatchRunsOptions {
  /** Called when the newest runs have come; after a break, when all runs have come that may have changed meanwhile. */
  readonly onReady?: () => void;
  /** Called where changes may be missing: forget the runs so far, the newest ones follow. */
  readonly onReset?: () => void;
  /** Ends the stream with the signal's reason as its error. */
  readonly signal?: AbortSignal;
}

/**
 * Agents and their runs, behind a URL (`createClient`) or within this process (`createRuntime`): the same calls, answers
 * and errors. A call that fails rejects with a ClientError. Unsubscribing from events detaches: the run continues.
 * `cancel` ends a run.
 */
export interface Rivulet {
  /** Runs an agent when subscribed to, once for each subscription unless there is an `idempotency_key`, and follows it. */
  run(agent_name: string, input: Input, options?: RunOptions): Events;

  /** Follows a run: the events so far, then those to come. */
  watch(run_id: string, options?: WatchOptions): Events;

  /** Runs an agent and resolves to the Run when it is final or awaits a reply; a failed run is a Run as well. */
  sync(agent_name: string, input: Input, options?: StartOptions): Promise<Run>;

  /** Starts a run and resolves to it as it begins; it continues with or without readers. */
  start(agent_name: string, input: Input, options?: StartOptions): Promise<Run>;

  /** Replies to an awaiting run. Readers of the run see how it continues. */
  resume(run_id: string, reply: Reply, options?: ResumeOptions): Promise<Run>;

  /** Ends a run; resolves to it as `cancelling`. */
  cancel(run_id: string, options?: CallOptions): Promise<Run>;

  /**
   * Makes a run that repeats the events of another one up to `after`, and then goes on live; resolves to the new run. A durable
   * agent gets the recorded values of its steps. Without `after`, the agent begins anew with the same input.
   */
  again(run_id: string, options?: AgainOptions): Promise<Run>;

  /** Tries a parked run again; resolves to it as it was. Readers of the run see how it continues. */
  retry(run_id: string, options?: CallOptions): Promise<Run>;

  /** The run as it is now, with its input. */
  get(run_id: string, options?: CallOptions): Promise<RunDetails>;

  /**
   * A page of the model calls and log lines of a run, oldest first, after so many of them (default 0). `next` is the `after` of
   * the next page. With authentication it needs the scope `admin`.
   */
  diagnostics(run_id: string, after?: number, options?: CallOptions): Promise<DiagnosticsResponse>;

  /** A page of runs without their output, newest first; `next_cursor` is the `cursor` of the next page. */
  runs(filter?: RunsQuery, options?: CallOptions): Promise<RunsResponse>;

  /**
   * The runs that match the filter, as of now and then whenever a status changes; each state replaces an earlier one of the
   * same `run_id`. Begins with the newest, at most `limit`, oldest first. A run that no longer matches comes with its new
   * status. A slow reader gets only the newest state of each run.
   */
  watchRuns(filter?: RunsFilter, options?: WatchRunsOptions): Observable<RunSummary>;

  /** Deletes a final run, with its events and messages. */
  remove(run_id: string, options?: CallOptions): Promise<void>;

  /** The agents' manifests by name; the first thousand, unless the page says otherwise. */
  agents(page?: AgentsQuery, options?: CallOptions): Promise<AgentManifest[]>;

  agent(name: string, options?: CallOptions): Promise<AgentManifest>;

  /** The URLs of a session's messages and state. */
  session(session_id: string, options?: CallOptions): Promise<Session>;

  /** The message or the state that one of a session's URLs names. It is read from here, whatever the URL's host. */
  resource(url: string, options?: CallOptions): Promise<unknown>;

  /** Deletes a session with its messages, its state and its runs, which have to be final. */
  removeSession(session_id: string, options?: CallOptions): Promise<void>;

  /** Deletes all that the caller owns, and cancels its runs first. With the scope `admin`, `owner` may be another one. */
  erase(owner?: string, options?: CallOptions): Promise<ErasedData>;
}
