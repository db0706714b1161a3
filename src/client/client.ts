import { Calls, type Read, type Transport } from './calls.ts';
import { defaultReconnect, eventsOf, type Reconnect } from './follow.ts';
import { Http, type HttpOptions } from './http.ts';
import { httpEvents } from './http-events.ts';
import type { Rivulet } from './rivulet.ts';

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

/** Carries the calls of a client to its server. */
function transportTo({ reconnect, ...options }: ClientOptions): Transport {
  const http = new Http(options);
  const retries = { ...defaultReconnect, ...reconnect };
  const connect = httpEvents(http, retries.idleTimeout);
  return Object.assign(http, { read: (...what: Read) => eventsOf(connect, retries, ...what) });
}

/**
 * A Rivulet server, as seen from a browser or Node. Events, and `sync`, reconnect after each break, unless another attempt would
 * fail for the same reason. `start`, `resume` and `again` are sent once more where no answer came. Each other call is one request.
 */
export type Client = Rivulet;

export const Client: new (options: ClientOptions) => Client = class extends Calls {
  constructor(options: ClientOptions) {
    super(transportTo(options));
  }
};

/** @throws TypeError where `url` is not a URL */
export const createClient = (options: ClientOptions): Client => new Client(options);
