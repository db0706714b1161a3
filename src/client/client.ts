import { lastValueFrom, type Observable } from 'rxjs';
import type { AgentManifest } from '../schema/agent.ts';
import type { DiagnosticsResponse, ErasedData, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Run, RunDetails, RunSummary } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { isLost } from './client-error.ts';
import type { Events } from './events.ts';
import { type Begin, type Connect, defaultReconnect, follow, type Reconnect, type RunsFilter } from './follow.ts';
import { Http, type HttpOptions, pathOf, query } from './http.ts';
import { httpEvents } from './http-events.ts';
import type { Input, Reply } from './input.ts';
import { toRun } from './operators.ts';
import {
  type AgainOptions,
  allAgents,
  beginning,
  type CallOptions,
  idIn,
  newKey,
  type ResumeOptions,
  type Rivulet,
  type RunOptions,
  repeating,
  replying,
  runsOf,
  type StartOptions,
  type WatchOptions,
  type WatchRunsOptions,
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
} from './shapes.ts';

export type { AgentManifest } from '../schema/agent.ts';
export type { Diagnostic, LogLine, ModelCall } from '../schema/diagnostic.ts';
export type { Event } from '../schema/event.ts';
export type { Message, MessageInput, MessagePart } from '../schema/message.ts';
export type { Question, Run, RunDetails, RunStatus, RunSummary } from '../schema/run.ts';
export type { Session } from '../schema/session.ts';
export { ClientError } from './client-error.ts';
export type { Events } from './events.ts';
export type { Break, FollowOptions, Reconnect, RunsFilter } from './follow.ts';
export type { HttpOptions } from './http.ts';
export type { Input, PartInput, Reply } from './input.ts';
export { fileOf } from './input.ts';
export { messages, messageText, parts, text, toRun } from './operators.ts';
export type {
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

export interface ClientOptions extends HttpOptions {
  /** How broken streams are taken up again. */
  readonly reconnect?: Partial<Reconnect>;
}

/**
 * A Rivulet server, as seen from a browser or Node. Events, and `sync`, reconnect after each break, unless another attempt would
 * fail for the same reason. `start`, `resume` and `again` are sent once more where no answer came. Each other call is one request.
 */
export class Client implements Rivulet {
  readonly #http: Http;
  readonly #connect: Connect;
  readonly #reconnect: Reconnect;

  constructor({ reconnect, ...http }: ClientOptions) {
    this.#http = new Http(http);
    this.#reconnect = { ...defaultReconnect, ...reconnect };
    this.#connect = httpEvents(this.#http, this.#reconnect.idleTimeout);
  }

  run(agent_name: string, input: Input, options: RunOptions = {}): Events {
    // The key is made here, so that each subscription has its own, and all attempts of one have the same.
    const begin = () => beginning(agent_name, input, 'stream', options, newKey());
    return follow(this.#connect, this.#reconnect, () => ({ begin: begin() }), options);
  }

  watch(run_id: string, options: WatchOptions = {}): Events {
    return follow(this.#connect, this.#reconnect, () => ({ run_id, after: options.after ?? 0 }), options);
  }

  /** Reads the stream, not `mode: sync`: proxies and fetch give up on an answer without a byte for minutes. */
  sync(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    // The event of an await does not repeat the output.
    return lastValueFrom(this.run(agent_name, input, { ...options, until: 'settled' }).pipe(toRun()));
  }

  start(agent_name: string, input: Input, { signal, ...options }: StartOptions = {}): Promise<Run> {
    return this.#post('runs', beginning(agent_name, input, 'async', options, newKey()), signal);
  }

  async resume(run_id: string, reply: Reply, { signal, ...options }: ResumeOptions = {}): Promise<Run> {
    return this.#post(pathOf('runs', run_id), replying(reply, options, newKey()), signal);
  }

  async again(run_id: string, { signal, ...options }: AgainOptions = {}): Promise<Run> {
    return this.#post(`${pathOf('runs', run_id)}/again`, repeating(options, newKey()), signal);
  }

  async cancel(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#http.json('POST', `${pathOf('runs', run_id)}/cancel`, isRun, options);
  }

  async retry(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#http.json('POST', `${pathOf('runs', run_id)}/retry`, isRun, options);
  }

  async get(run_id: string, options?: CallOptions): Promise<RunDetails> {
    return this.#http.json('GET', pathOf('runs', run_id), isRunDetails, options);
  }

  async diagnostics(run_id: string, after?: number, options?: CallOptions): Promise<DiagnosticsResponse> {
    return this.#http.json(
      'GET',
      `${pathOf('runs', run_id)}/diagnostics${query({ after })}`,
      isDiagnosticsPage,
      options,
    );
  }

  runs(filter: RunsQuery = {}, options?: CallOptions): Promise<RunsResponse> {
    return this.#http.json('GET', `runs${query(filter)}`, isRunsPage, options);
  }

  watchRuns(filter: RunsFilter = {}, options: WatchRunsOptions = {}): Observable<RunSummary> {
    return runsOf(
      follow(this.#connect, this.#reconnect, () => ({ filter, after: 0 }), options),
      options,
    );
  }

  async remove(run_id: string, options?: CallOptions): Promise<void> {
    await this.#http.send('DELETE', pathOf('runs', run_id), options);
  }

  async agents(page = allAgents, options?: CallOptions): Promise<AgentManifest[]> {
    const { agents } = await this.#http.json('GET', `agents${query(page)}`, isAgentsPage, options);
    return agents;
  }

  async agent(name: string, options?: CallOptions): Promise<AgentManifest> {
    return this.#http.json('GET', pathOf('agents', name), isManifest, options);
  }

  async session(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#http.json('GET', pathOf('sessions', session_id), isSession, options);
  }

  async resource(url: string, options?: CallOptions): Promise<unknown> {
    return this.#http.json('GET', pathOf('resources', idIn(url)), isJson, options);
  }

  async removeSession(session_id: string, options?: CallOptions): Promise<void> {
    await this.#http.send('DELETE', pathOf('sessions', session_id), options);
  }

  erase(owner?: string, options?: CallOptions): Promise<ErasedData> {
    return this.#http.json('DELETE', `principals/me/data${query({ owner })}`, isErased, options);
  }

  /** A POST that got no answer may have arrived. It is sent once more, and its key makes one run, or one reply, of both. */
  #post(path: string, begin: Begin, signal: AbortSignal | undefined): Promise<Run> {
    const send = (): Promise<Run> => this.#http.json('POST', path, isRun, { ...begin, signal });
    return send().catch((error) => {
      if (isLost(error)) return send();
      throw error;
    });
  }
}

/** @throws TypeError where `url` is not a URL */
export const createClient = (options: ClientOptions): Client => new Client(options);
