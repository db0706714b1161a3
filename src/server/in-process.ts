import { lastValueFrom, type Observable } from 'rxjs';
import { broken, ClientError } from '../client/client-error.ts';
import { Events } from '../client/events.ts';
import {
  type Begin,
  eventsOf,
  type FeedEvent,
  type Followed,
  type FollowedFeed,
  type FollowedRun,
  type FollowOptions,
  type Numbered,
  type Reconnect,
  type RunsFilter,
} from '../client/follow.ts';
import { pathOf } from '../client/http.ts';
import type { Input, Reply } from '../client/input.ts';
import { toRun } from '../client/operators.ts';
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
} from '../client/rivulet.ts';
import { fail, RivuletError } from '../core/errors.ts';
import type { Principal } from '../core/principal.ts';
import { isFinal, isSettled } from '../core/run-state.ts';
import { giveWay, type Linked, linked } from '../core/timing.ts';
import type { Access } from '../engine/access.ts';
import { newId } from '../engine/ids.ts';
import type { CursorOptions } from '../engine/log/cursor.ts';
import { checkJsonSize } from '../http/limits/json-size.ts';
import type { HttpLimits } from '../http/limits/limits.ts';
import { cursorIn, feedOf, listDiagnostics, listRuns, runOptions } from '../http/requests/run-requests.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { AgentsQuery, DiagnosticsResponse, ErasedData, RunsQuery, RunsResponse } from '../schema/api.ts';
import type { Event } from '../schema/event.ts';
import type { Run, RunDetails, RunStatus, RunSummary } from '../schema/run.ts';
import type { Session } from '../schema/session.ts';
import { agentsQuery, bodyIn, checks, jsonOf, runIn, runsQuery, sessionIn, textsOf } from './call-checks.ts';

export interface InProcessOptions {
  readonly access: Access;
  readonly limits: Pick<HttpLimits, 'bodyLimit' | 'bodyValues'>;
  readonly reconnect: Reconnect;
  /** Told of errors that are not the caller's. */
  readonly log: {
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
}

/** Milliseconds until a caller repeats a call that got 503. Servers send the same time as `Retry-After`. */
const retryAfter = 1_000;

/** The open readers of a runtime. */
interface Readers {
  readonly followers: Set<Linked>;
  stopping: boolean;
}

/** A principal that the app has authenticated itself. */
export type CustomPrincipal = Omit<Principal, 'kind'>;

/**
 * The calls of an HTTP client, made on the engine directly: the same checks, answers and errors. Input is copied as
 * JSON, and output is parsed from JSON, so that callers and runs share no object.
 */
export class InProcess implements Rivulet {
  readonly #access: Access;
  readonly #options: InProcessOptions;
  readonly #readers: Readers;

  /** `readers`: those of all principals. */
  constructor(options: InProcessOptions, readers: Readers = { stopping: false, followers: new Set() }) {
    this.#access = options.access;
    this.#options = options;
    this.#readers = readers;
  }

  /** The calls of a principal, which sees only what it owns. Its readers end with those of this one. */
  as(principal: CustomPrincipal): Rivulet {
    return new InProcess(
      { ...this.#options, access: this.#access.as({ ...principal, kind: 'custom' }) },
      this.#readers,
    );
  }

  run(agent_name: string, input: Input, options: RunOptions = {}): Events {
    // The key is made here, so that each subscription has its own, and all attempts of one have the same.
    const begin = () => beginning(agent_name, input, 'stream', options, newKey());
    return this.#follow(() => ({ begin: begin() }), options);
  }

  watch(run_id: string, options: WatchOptions = {}): Events {
    return this.#follow(() => ({ run_id, after: options.after ?? 0 }), options);
  }

  sync(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    // The event of an await does not repeat the output.
    return lastValueFrom(this.run(agent_name, input, { ...options, until: 'settled' }).pipe(toRun()));
  }

  start(agent_name: string, input: Input, options: StartOptions = {}): Promise<Run> {
    return this.#call(options, async () => {
      const { run } = await this.#create(beginning(agent_name, input, 'async', options));
      return JSON.parse(run);
    });
  }

  resume(run_id: string, reply: Reply, options: ResumeOptions = {}): Promise<Run> {
    return this.#call(options, async () => {
      const id = runIn(run_id);
      const { body, headers } = this.#received(replying(reply, { channel: 'in-process', ...options }));
      const { await_resume } = checks.resume(body);
      const { run } = await this.#access.resume(id, await_resume, runOptions(checks.headers(headers)));
      return JSON.parse(run);
    });
  }

  again(run_id: string, options: AgainOptions = {}): Promise<Run> {
    return this.#call(options, async () => {
      const id = runIn(run_id);
      const { body, headers } = this.#received(repeating(options));
      const { run } = await this.#access.again(id, checks.again(body).after ?? 0, runOptions(checks.headers(headers)));
      return JSON.parse(run);
    });
  }

  cancel(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#call(options, async () => JSON.parse(await this.#access.cancel(runIn(run_id))));
  }

  retry(run_id: string, options?: CallOptions): Promise<Run> {
    return this.#call(options, async () => JSON.parse(await this.#access.retry(runIn(run_id))));
  }

  get(run_id: string, options?: CallOptions): Promise<RunDetails> {
    return this.#call(options, async () => JSON.parse(await this.#access.details(runIn(run_id))));
  }

  diagnostics(run_id: string, after?: number, options?: CallOptions): Promise<DiagnosticsResponse> {
    return this.#call(options, async () => JSON.parse(await listDiagnostics(this.#access, runIn(run_id), after)));
  }

  runs(filter: RunsQuery = {}, options?: CallOptions): Promise<RunsResponse> {
    return this.#call(options, async () => {
      return JSON.parse(await listRuns(this.#access, runsQuery(filter)));
    });
  }

  watchRuns(filter: RunsFilter = {}, options: WatchRunsOptions = {}): Observable<RunSummary> {
    return runsOf(
      this.#follow(() => ({ filter, after: 0 }), options),
      options,
    );
  }

  remove(run_id: string, options?: CallOptions): Promise<void> {
    return this.#call(options, () => this.#access.remove(runIn(run_id)));
  }

  agents(page: AgentsQuery = allAgents, options?: CallOptions): Promise<AgentManifest[]> {
    return this.#call(options, async () => {
      const { limit = 10, offset = 0 } = agentsQuery(page);
      return copyOf(await this.#access.manifests(limit, offset));
    });
  }

  agent(name: string, options?: CallOptions): Promise<AgentManifest> {
    return this.#call(options, async () => {
      pathOf('agents', name);
      return copyOf(await this.#access.manifest(name));
    });
  }

  session(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#call(options, () => this.#access.session(sessionIn(session_id)));
  }

  resource(url: string, options?: CallOptions): Promise<unknown> {
    return this.#call(options, async () => {
      const resource_id = idIn(url);
      pathOf('resources', resource_id);
      const { body } = await this.#access.resource(checks.resource({ resource_id }).resource_id.toLowerCase());
      return JSON.parse(body);
    });
  }

  removeSession(session_id: string, options?: CallOptions): Promise<void> {
    return this.#call(options, () => this.#access.removeSession(sessionIn(session_id)));
  }

  erase(owner?: string, options?: CallOptions): Promise<ErasedData> {
    return this.#call(options, () => this.#access.erase(owner));
  }

  /** Whether calls are refused. */
  get stopping(): boolean {
    return this.#readers.stopping;
  }

  /** Refuses calls from now on. Open readers continue until the engine has stopped. */
  refuse(): void {
    this.#readers.stopping = true;
  }

  /** Ends the open readers, with the error of a refused call. */
  endStreams(): void {
    const stopping = this.#refusal(fail('stopping'));
    for (const follower of this.#readers.followers) follower.abort(stopping);
  }

  #follow(source: () => FollowedRun, options: FollowOptions): Events;
  #follow(source: () => FollowedFeed, options: FollowOptions): Events<FeedEvent>;
  #follow(source: () => Followed, options: FollowOptions): Events<Event | FeedEvent> {
    return new Events((left, isLoop) => this.#events(source(), options, left, isLoop));
  }

  async *#events(
    source: Followed,
    options: FollowOptions,
    left: AbortSignal,
    isLoop: boolean,
  ): AsyncGenerator<Event | FeedEvent, void, undefined> {
    // Before the retries: a runtime that stops would refuse every attempt, and the reader would retry for ever.
    if (this.#readers.stopping) throw this.#refusal(fail('stopping'));
    // The caller's signal may outlive many readers.
    const follower = linked(options.signal);
    const any = AbortSignal.any([left, follower.signal]);
    this.#readers.followers.add(follower);
    try {
      const connect = (one: Followed, ended: AbortSignal) =>
        'filter' in one ? this.#feed(one, ended) : this.#connection(one, ended);
      yield* eventsOf(connect, this.#options.reconnect, source, options, any, isLoop);
    } finally {
      this.#readers.followers.delete(follower);
      follower.unlink();
    }
  }

  /**
   * The events that one HTTP stream would carry: of a run that it begins, those until the run settles; of an existing
   * run, all after the cursor.
   */
  async *#connection(source: FollowedRun, signal: AbortSignal): AsyncGenerator<Iterable<Numbered>, void, undefined> {
    const isEnd: (status: RunStatus) => boolean = 'begin' in source ? isSettled : isFinal;
    // Without the signal: if the caller leaves while the run begins, the disconnect policy of the run applies.
    const { cursor, leave } = await this.#call({}, () => this.#open(source));
    // At once: a loop may be busy with an event, and come back late or never.
    const close = (): void => {
      cursor.close();
      leave(!ended && !this.#readers.stopping);
    };
    let ended = cursor.exhausted;
    let gone = true;
    const numbered = function* (first: number, lines: readonly string[]): Generator<Numbered, void, undefined> {
      for (const [index, line] of lines.entries()) {
        const event: Event = JSON.parse(line);
        ended = 'run' in event && isEnd(event.run.status);
        yield { id: first + index, event };
      }
    };
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    try {
      for await (const { first, lines } of cursor) {
        yield numbered(first, lines);
        await giveWay();
      }
      signal.throwIfAborted();
      gone = false;
      if (ended) return;
      throw this.#readers.stopping
        ? this.#refusal(fail('stopping'))
        : broken('interrupted', 'The stream ended before its run.');
    } catch (error) {
      gone = signal.aborted;
      throw gone ? signal.reason : this.#refusal(error, 0);
    } finally {
      signal.removeEventListener('abort', close);
      cursor.close();
      // When the runtime stops, the disconnect policy does not apply: the next process continues the run.
      leave(gone && !ended && !this.#readers.stopping);
    }
  }

  /** The events that one HTTP stream of a feed would carry. */
  async *#feed({ filter, after }: FollowedFeed, signal: AbortSignal): AsyncGenerator<Numbered[], void, undefined> {
    const reader = await this.#call({}, () => this.#access.watchRuns(...feedOf(runsQuery(filter), after)));
    const close = (): void => reader.close();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    try {
      for await (const events of reader) {
        yield events.map(({ type, data, position = 0 }) => ({ id: position, event: { type, ...JSON.parse(data) } }));
      }
      signal.throwIfAborted();
      throw broken('interrupted', 'The stream ended early.');
    } catch (error) {
      throw signal.aborted ? signal.reason : this.#refusal(error, 0);
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  }

  async #open(source: FollowedRun) {
    if ('begin' in source) {
      const { run_id, after } = await this.#create(source.begin);
      return this.#read(run_id, { after, until: 'settled' });
    }
    const name = 'Last-Event-ID';
    return this.#read(runIn(source.run_id), { after: cursorIn(name, String(source.after)), name });
  }

  async #read(run_id: string, options: CursorOptions) {
    const cursor = await this.#access.openCursor(run_id, options);
    return { cursor, leave: this.#access.connectReader(cursor) };
  }

  #create(begin: Begin) {
    const { body, headers } = this.#received(begin);
    return this.#access.create(checks.create(body), runOptions(checks.headers(headers)));
  }

  /** A request as a server receives it: the body as JSON within the limits, the defined headers in lower case. */
  #received({ body, headers }: Begin): { body: unknown; headers: object } {
    const { bodyLimit, bodyValues } = this.#options.limits;
    const text = jsonOf(body);
    if (Buffer.byteLength(text) > bodyLimit) throw fail('body_too_large');
    checkJsonSize(text, bodyValues);
    const given = Object.entries(textsOf(headers)).map(([name, value]) => [name.toLowerCase(), value]);
    return { body: bodyIn(text), headers: Object.fromEntries(given) };
  }

  /** @throws ClientError, or the reason of the signal */
  async #call<T>({ signal }: CallOptions = {}, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    try {
      if (this.#readers.stopping) throw fail('stopping');
      return await (signal === undefined ? work() : unlessAborted(work(), signal));
    } catch (error) {
      throw signal?.aborted ? signal.reason : this.#refusal(error);
    }
  }

  /** The error that an HTTP client would be given. */
  #refusal(error: unknown, status?: number): ClientError {
    if (error instanceof ClientError) return error;
    const known = error instanceof RivuletError ? error : fail('internal_error', newId());
    const { log } = this.#options;
    if (known.kind === 'internal_error') log.error({ err: error }, known.message);
    else if (known.status >= 500 && !this.#readers.stopping) log.warn({ err: known.cause }, known.message);
    return new ClientError({
      ...known.toJSON(),
      status: status ?? known.status,
      retryAfter: known.status === 503 && status === undefined ? retryAfter : undefined,
    });
  }
}

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value));

/** Settles as the work does, or rejects as soon as the signal fires; the work goes on. */
const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort);
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
  });
