import { lastValueFrom } from 'rxjs';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsQuery, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Run } from '../schema/run.ts';
import type { Session, SessionInput } from '../schema/session.ts';
import { Events } from './events.ts';
import { defaultReconnect, Follower, type FollowOptions, type Reconnect, type Source } from './follow.ts';
import { Http, type HttpOptions, pathOf, query } from './http.ts';
import { type Input, type Reply, toMessages, toReply } from './input.ts';
import { toRun } from './operators.ts';
import { isAgentsPage, isManifest, isRun, isRunsPage, isSession } from './shapes.ts';

export type { AgentManifest } from '../schema/agent.ts';
export type { Event } from '../schema/event.ts';
export type { Message, MessageInput, MessagePart } from '../schema/message.ts';
export type { Run, RunStatus } from '../schema/run.ts';
export type { Session } from '../schema/session.ts';
export { ClientError } from './client-error.ts';
export type { Events } from './events.ts';
export type { Break, FollowOptions, Reconnect } from './follow.ts';
export type { Input, PartInput, Reply } from './input.ts';
export { messages, parts, text, toRun } from './operators.ts';

export interface ClientOptions extends HttpOptions {
  /** How broken streams are taken up again. */
  readonly reconnect?: Partial<Reconnect>;
}

export interface CallOptions {
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
  /** What to do where the session has a run that is not over. Default: the agent's, or `parallel`. */
  readonly if_busy?: 'parallel' | 'enqueue' | 'reject' | 'interrupt';
  /** What the going of the last reader means; the number is in seconds. Default: the agent's, or `continue`. */
  readonly on_disconnect?: 'continue' | 'cancel' | `grace=${number}`;
}

export interface RunOptions extends StartOptions, FollowOptions {}

export interface WatchOptions extends FollowOptions {
  /** Id of the last event already seen: the nth event of a run has the id n. Default 0: from the beginning. */
  readonly after?: number;
}

/**
 * A Rivulet server, as seen from a browser or Node.
 * Unsubscribing from events detaches: the run goes on. `cancel` is what ends a run.
 * Events, and `sync`, come back after each break, until that is of no use; the other promises are one request each.
 * What goes wrong is a ClientError.
 */
export class Client {
  readonly #http: Http;
  readonly #reconnect: Reconnect;

  constructor({ reconnect, ...http }: ClientOptions) {
    this.#http = new Http(http);
    this.#reconnect = { ...defaultReconnect, ...reconnect };
  }

  /** Runs an agent when subscribed to, once for each subscription unless there is an `idempotency_key`, and follows it. */
  run(agent_name: string, input: Input, { until, signal, ...options }: RunOptions = {}): Events {
    return new Events((left) => {
      // Made here, so that each subscription has a key, and all attempts of one have the same.
      const begin = beginning(agent_name, input, 'stream', { idempotency_key: newKey(), ...options });
      return this.#follow({ begin }, until, left, signal);
    });
  }

  /** Follows a run: what there is already, and then what comes. */
  watch(run_id: string, { after = 0, until, signal }: WatchOptions = {}): Events {
    return new Events((left) => this.#follow({ run_id, after }, until, left, signal));
  }

  /**
   * Runs an agent and resolves to the Run when it is over, or asks something; a failed run is a Run as well.
   * It reads the stream, not `mode: sync`: an answer without a byte for minutes is what proxies and fetch give up on.
   */
  sync(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    // The event of an await does not repeat the output.
    return lastValueFrom(this.run(agent_name, input, { ...options, until: 'settled' }).pipe(toRun()));
  }

  /** Starts a run and resolves to it as it begins; it goes on whether anybody watches or not. */
  start(agent_name: string, input: Input, { signal, ...options }: StartOptions = {}): Promise<Run> {
    return this.#http.json('POST', 'runs', isRun, { ...beginning(agent_name, input, 'async', options), signal });
  }

  /** Answers what a run awaits. Whoever watches the run sees how it goes on. */
  async resume(run_id: string, reply: Reply, { signal, idempotency_key }: OnceOptions = {}): Promise<Run> {
    return this.#http.json('POST', pathOf('runs', run_id), isRun, {
      body: { mode: 'async', await_resume: { type: 'message', message: toReply(reply) } },
      headers: { 'Idempotency-Key': idempotency_key },
      signal,
    });
  }

  /** Ends a run; resolves to it as `cancelling`. */
  async cancel(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#http.json('POST', `${pathOf('runs', run_id)}/cancel`, isRun, options);
  }

  /** The run as it is now. */
  async get(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#http.json('GET', pathOf('runs', run_id), isRun, options);
  }

  /** A page of runs, newest first; `next_cursor` is the `cursor` of the next page. */
  runs(filter: RunsQuery = {}, options?: CallOptions): Promise<RunsResponse> {
    return this.#http.json('GET', `runs${query(filter)}`, isRunsPage, options);
  }

  /** Deletes a run that is over, with its events and messages. */
  async remove(run_id: string, options?: CallOptions): Promise<void> {
    await this.#http.send('DELETE', pathOf('runs', run_id), options);
  }

  /** The agents' manifests by name; the first thousand, unless the page says otherwise. */
  async agents(page: AgentsQuery = { limit: 1000 }, options?: CallOptions): Promise<AgentManifest[]> {
    const { agents } = await this.#http.json('GET', `agents${query(page)}`, isAgentsPage, options);
    return agents;
  }

  async agent(name: string, options?: CallOptions): Promise<AgentManifest> {
    return this.#http.json('GET', pathOf('agents', name), isManifest, options);
  }

  /** The URLs of a session's messages and state. */
  async session(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#http.json('GET', pathOf('sessions', session_id), isSession, options);
  }

  /** Deletes a session with its messages, its state and its runs, which have to be over. */
  async removeSession(session_id: string, options?: CallOptions): Promise<void> {
    await this.#http.send('DELETE', pathOf('sessions', session_id), options);
  }

  #follow(source: Source, until: FollowOptions['until'], left: AbortSignal, signal: AbortSignal | undefined) {
    const either = signal === undefined ? left : AbortSignal.any([left, signal]);
    return new Follower(this.#http, source, this.#reconnect, until).events(either);
  }
}

/** @throws TypeError where `url` is none */
export const createClient = (options: ClientOptions): Client => new Client(options);

function beginning(agent_name: string, input: Input, mode: 'stream' | 'async', options: StartOptions) {
  const { session_id, session, idempotency_key, if_busy, on_disconnect } = options;
  return {
    body: { agent_name, input: toMessages(input), session_id, session, mode },
    headers: { 'Idempotency-Key': idempotency_key, 'If-Busy': if_busy, 'On-Disconnect': on_disconnect },
  };
}

// Not randomUUID, which browsers have on https only.
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
