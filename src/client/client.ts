import { type CallRequest, Calls, newKey, type Transport } from './calls.ts';
import { isLost } from './client-error.ts';
import {
  type Connect,
  defaultReconnect,
  eventsOf,
  type Followed,
  type FollowOptions,
  type Reconnect,
} from './follow.ts';
import { Http, type HttpOptions, query, segmentOf } from './http.ts';
import { httpEvents } from './http-events.ts';
import type { Rivulet } from './rivulet.ts';
import type { Shape } from './shapes.ts';

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

/** The calls as requests of a server. */
class HttpTransport implements Transport {
  readonly #http: Http;
  readonly #connect: Connect;
  readonly #reconnect: Reconnect;

  constructor({ reconnect, ...http }: ClientOptions) {
    this.#http = new Http(http);
    this.#reconnect = { ...defaultReconnect, ...reconnect };
    this.#connect = httpEvents(this.#http, this.#reconnect.idleTimeout);
  }

  async call<T>(route: string, shape: Shape<T>, request: CallRequest): Promise<T> {
    const { params = {}, query: values = {}, body, headers, signal } = request;
    const [method = '', pattern = ''] = route.split(' /');
    const path = pattern.replace(/:(\w+)/, (_, name: string) => segmentOf(params[name] ?? '')) + query(values);
    if (body === undefined) return this.#http.json(method, path, shape, { signal });
    const keyed = { ...headers, 'Idempotency-Key': headers?.['Idempotency-Key'] ?? newKey() };
    const send = (): Promise<T> => this.#http.json(method, path, shape, { body, headers: keyed, signal });
    // A POST that got no answer may have arrived. It is sent once more, and its key makes one run, or one reply, of both.
    return send().catch((error) => {
      if (isLost(error)) return send();
      throw error;
    });
  }

  read(source: Followed, options: FollowOptions, left: AbortSignal, isLoop: boolean) {
    const signal = options.signal === undefined ? left : AbortSignal.any([left, options.signal]);
    return eventsOf(this.#connect, this.#reconnect, source, options, signal, isLoop);
  }
}

/**
 * A Rivulet server, as seen from a browser or Node. Events, and `sync`, reconnect after each break, unless another attempt would
 * fail for the same reason. `start`, `resume` and `again` are sent once more where no answer came. Each other call is one request.
 */
export type Client = Rivulet;

export const Client: new (options: ClientOptions) => Client = class extends Calls {
  constructor(options: ClientOptions) {
    super(new HttpTransport(options));
  }
};

/** @throws TypeError where `url` is not a URL */
export const createClient = (options: ClientOptions): Client => new Client(options);
