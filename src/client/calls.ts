import { filter, lastValueFrom, map, type Observable, tap } from 'rxjs';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsQuery, DiagnosticsResponse, ErasedData, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Event } from '../schema/event.ts';
import type { Run, RunDetails, RunSummary } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { Events } from './events.ts';
import type { Begin, FeedEvent, Followed, FollowedFeed, FollowedRun, FollowOptions, RunsFilter } from './follow.ts';
import { type Input, type Reply, toMessages, toReply } from './input.ts';
import { toRun } from './operators.ts';
import type {
  AgainOptions,
  CallOptions,
  ResumeOptions,
  Rivulet,
  RunOptions,
  StartOptions,
  WatchOptions,
  WatchRunsOptions,
} from './rivulet.ts';
import {
  isAgentsPage,
  isDiagnosticsPage,
  isErased,
  isJson,
  isManifest,
  isNothing,
  isRun,
  isRunDetails,
  isRunsPage,
  isSession,
  type Shape,
} from './shapes.ts';

export interface CallRequest extends CallOptions, Partial<Begin> {
  /** By their names in the path. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object;
}

/** Carries calls to a server, or to the engine of this process. Fails with a ClientError, or with the signal's reason. */
export interface Transport {
  /** The channel of a reply that names none. Default: the server's. */
  readonly channel?: string;
  /** `route` is one of the API, such as `GET /runs/:run_id`; the answer of a server has to have the shape. */
  call<T>(route: string, shape: Shape<T>, request: CallRequest): Promise<T>;
  /** The reader of a subscription or a loop, which the signal ends. */
  read(
    source: Followed,
    options: FollowOptions,
    signal: AbortSignal,
    isLoop: boolean,
  ): AsyncGenerator<Event | FeedEvent, void, undefined>;
}

/** The calls of a client or a runtime, over its transport. */
export class Calls implements Rivulet {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  run(agent_name: string, input: Input, options: RunOptions = {}): Events {
    // The key is made here, so that each subscription has its own, and all attempts of one have the same.
    return this.#follow(() => ({ begin: beginning(agent_name, input, 'stream', options, newKey()) }), options);
  }

  watch(run_id: string, options: WatchOptions = {}): Events {
    return this.#follow(() => ({ run_id, after: options.after ?? 0 }), options);
  }

  /** Reads the stream, not `mode: sync`: proxies and fetch give up on an answer without a byte for minutes. */
  sync(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    // The event of an await does not repeat the output.
    return lastValueFrom(this.run(agent_name, input, { ...options, until: 'settled' }).pipe(toRun()));
  }

  async start(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    const { signal } = options;
    return this.#transport.call('POST /runs', isRun, { ...beginning(agent_name, input, 'async', options), signal });
  }

  async resume(run_id: string, reply: Reply, options: ResumeOptions = {}): Promise<Run> {
    const { idempotency_key, channel = this.#transport.channel, signal } = options;
    return this.#transport.call('POST /runs/:run_id', isRun, {
      params: { run_id },
      body: { mode: 'async', await_resume: { type: 'message', message: toReply(reply) } },
      headers: { 'Idempotency-Key': idempotency_key, 'Rivulet-Channel': channel },
      signal,
    });
  }

  again(run_id: string, { after, idempotency_key, signal }: AgainOptions = {}): Promise<Run> {
    const headers = { 'Idempotency-Key': idempotency_key };
    const request = { params: { run_id }, body: { after }, headers, signal };
    return this.#transport.call('POST /runs/:run_id/again', isRun, request);
  }

  cancel(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#transport.call('POST /runs/:run_id/cancel', isRun, { params: { run_id }, ...options });
  }

  retry(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#transport.call('POST /runs/:run_id/retry', isRun, { params: { run_id }, ...options });
  }

  get(run_id: string, options?: CallOptions): Promise<RunDetails> {
    return this.#transport.call('GET /runs/:run_id', isRunDetails, { params: { run_id }, ...options });
  }

  diagnostics(run_id: string, after?: number, options?: CallOptions): Promise<DiagnosticsResponse> {
    const request = { params: { run_id }, query: { after }, ...options };
    return this.#transport.call('GET /runs/:run_id/diagnostics', isDiagnosticsPage, request);
  }

  runs(query: RunsQuery = {}, options?: CallOptions): Promise<RunsResponse> {
    return this.#transport.call('GET /runs', isRunsPage, { query, ...options });
  }

  watchRuns(filters: RunsFilter = {}, options: WatchRunsOptions = {}): Observable<RunSummary> {
    const { onReady, onReset } = options;
    return this.#follow(() => ({ filter: filters, after: 0 }), options).pipe(
      tap(({ type }) => ({ run: undefined, ready: onReady, reset: onReset })[type]?.()),
      filter((event) => event.type === 'run'),
      map(({ run }) => run),
    );
  }

  async remove(run_id: string, options?: CallOptions): Promise<void> {
    await this.#transport.call('DELETE /runs/:run_id', isNothing, { params: { run_id }, ...options });
  }

  async agents(query: AgentsQuery = { limit: 1000 }, options?: CallOptions): Promise<AgentManifest[]> {
    return (await this.#transport.call('GET /agents', isAgentsPage, { query, ...options })).agents;
  }

  agent(name: string, options?: CallOptions): Promise<AgentManifest> {
    return this.#transport.call('GET /agents/:name', isManifest, { params: { name }, ...options });
  }

  session(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#transport.call('GET /sessions/:session_id', isSession, { params: { session_id }, ...options });
  }

  resource(url: string, options?: CallOptions): Promise<unknown> {
    const resource_id = url.slice(url.lastIndexOf('/') + 1);
    return this.#transport.call('GET /resources/:resource_id', isJson, { params: { resource_id }, ...options });
  }

  async removeSession(session_id: string, options?: CallOptions): Promise<void> {
    await this.#transport.call('DELETE /sessions/:session_id', isNothing, { params: { session_id }, ...options });
  }

  erase(owner?: string, options?: CallOptions): Promise<ErasedData> {
    return this.#transport.call('DELETE /principals/me/data', isErased, { query: { owner }, ...options });
  }

  /** Each subscription calls `source`, and has its own cursor. */
  #follow(source: () => FollowedRun, options: FollowOptions): Events;
  #follow(source: () => FollowedFeed, options: FollowOptions): Events<FeedEvent>;
  #follow(source: () => Followed, options: FollowOptions): Events<Event | FeedEvent> {
    return new Events((signal, isLoop) => this.#transport.read(source(), options, signal, isLoop));
  }
}

/** What a call sends to begin a run. `key` stands in for an idempotency key that the options do not have. */
function beginning(
  agent_name: string,
  input: Input,
  mode: 'stream' | 'async',
  options: StartOptions,
  key?: string,
): Begin {
  const { session_id, session, webhook, idempotency_key = key, if_busy, on_disconnect } = options;
  return {
    body: { agent_name, input: toMessages(input), session_id, session, webhook, mode },
    headers: { 'Idempotency-Key': idempotency_key, 'If-Busy': if_busy, 'On-Disconnect': on_disconnect },
  };
}

// Not randomUUID, which browsers have on https only.
export const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');
