import { filter, lastValueFrom, map, type Observable, tap } from 'rxjs';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsQuery, DiagnosticsResponse, ErasedData, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Event } from '../schema/event.ts';
import type { Run, RunDetails, RunSummary } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { isLost } from './client-error.ts';
import { Events } from './events.ts';
import type { Begin, FeedEvent, Followed, FollowedFeed, FollowedRun, FollowOptions, RunsFilter } from './follow.ts';
import { type HttpRequest, pathOf, query } from './http.ts';
import { type Input, type Reply, toMessages, toReply } from './input.ts';
import { toRun } from './operators.ts';
import type {
  AgainOptions,
  CallOptions,
  OnceOptions,
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
  isRun,
  isRunDetails,
  isRunsPage,
  isSession,
  type Shape,
} from './shapes.ts';

/** Carries calls to a server, or to the engine of this process. Fails with a ClientError, or with the signal's reason. */
export interface Transport {
  /** The channel of replies from this process. A server has its own, and its answers may be lost on the way. */
  readonly channel?: string;
  /** Sends a request whose answer is not read. */
  send(method: string, path: string, request?: HttpRequest): Promise<unknown>;
  /** Sends a request. The answer of a server has to have the shape. */
  json<T>(method: string, path: string, shape: Shape<T>, request?: HttpRequest): Promise<T>;
  /** The reader of a subscription or a loop. */
  read(...what: Read): AsyncGenerator<Event | FeedEvent, void, undefined>;
}

/** What a reader reads, and how; the signal fires when its subscriber has left. */
export type Read = [source: Followed, options: FollowOptions, left: AbortSignal, isLoop: boolean];

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
    return this.#post('runs', beginning(agent_name, input, 'async', options), options);
  }

  async resume(run_id: string, reply: Reply, options: ResumeOptions = {}): Promise<Run> {
    const { channel = this.#transport.channel } = options;
    return this.#post(
      pathOf('runs', run_id),
      {
        body: { mode: 'async', await_resume: { type: 'message', message: toReply(reply) } },
        headers: { 'Rivulet-Channel': channel },
      },
      options,
    );
  }

  async again(run_id: string, options: AgainOptions = {}): Promise<Run> {
    return this.#post(`${pathOf('runs', run_id)}/again`, { body: { after: options.after }, headers: {} }, options);
  }

  async cancel(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#transport.json('POST', `${pathOf('runs', run_id)}/cancel`, isRun, options);
  }

  async retry(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#transport.json('POST', `${pathOf('runs', run_id)}/retry`, isRun, options);
  }

  async get(run_id: string, options?: CallOptions): Promise<RunDetails> {
    return this.#transport.json('GET', pathOf('runs', run_id), isRunDetails, options);
  }

  async diagnostics(run_id: string, after?: number, options?: CallOptions): Promise<DiagnosticsResponse> {
    return this.#transport.json(
      'GET',
      `${pathOf('runs', run_id)}/diagnostics${query({ after })}`,
      isDiagnosticsPage,
      options,
    );
  }

  runs(filter: RunsQuery = {}, options?: CallOptions): Promise<RunsResponse> {
    return this.#transport.json('GET', `runs${query(filter)}`, isRunsPage, options);
  }

  watchRuns(filters: RunsFilter = {}, options: WatchRunsOptions = {}): Observable<RunSummary> {
    return this.#follow(() => ({ filter: filters, after: 0 }), options).pipe(
      tap(({ type }) => ({ run: undefined, ready: options.onReady, reset: options.onReset })[type]?.()),
      filter((event) => event.type === 'run'),
      map(({ run }) => run),
    );
  }

  async remove(run_id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send('DELETE', pathOf('runs', run_id), options);
  }

  async agents(page: AgentsQuery = { limit: 1000 }, options?: CallOptions): Promise<AgentManifest[]> {
    return (await this.#transport.json('GET', `agents${query(page)}`, isAgentsPage, options)).agents;
  }

  async agent(name: string, options?: CallOptions): Promise<AgentManifest> {
    return this.#transport.json('GET', pathOf('agents', name), isManifest, options);
  }

  async session(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#transport.json('GET', pathOf('sessions', session_id), isSession, options);
  }

  async resource(url: string, options?: CallOptions): Promise<unknown> {
    return this.#transport.json('GET', pathOf('resources', url.slice(url.lastIndexOf('/') + 1)), isJson, options);
  }

  async removeSession(session_id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send('DELETE', pathOf('sessions', session_id), options);
  }

  erase(owner?: string, options?: CallOptions): Promise<ErasedData> {
    return this.#transport.json('DELETE', `principals/me/data${query({ owner })}`, isErased, options);
  }

  /** A POST that got no answer may have arrived. It is sent once more, and its key makes one run, or one reply, of both. */
  #post(path: string, { body, headers }: Begin, options: OnceOptions): Promise<Run> {
    const { idempotency_key = this.#transport.channel ? undefined : newKey(), signal } = options;
    const request = { body, headers: { ...headers, 'Idempotency-Key': idempotency_key }, signal };
    const send = () => this.#transport.json('POST', path, isRun, request);
    return send().catch((error) => {
      if (isLost(error)) return send();
      throw error;
    });
  }

  /** Each subscription calls `source`, and has its own cursor. */
  #follow(source: () => FollowedRun, options: FollowOptions): Events;
  #follow(source: () => FollowedFeed, options: FollowOptions): Events<FeedEvent>;
  #follow(source: () => Followed, options: FollowOptions): Events<Event | FeedEvent> {
    return new Events((left, isLoop) => this.#transport.read(source(), options, left, isLoop));
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
