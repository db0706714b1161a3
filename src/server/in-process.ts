import type { TSchema } from '@sinclair/typebox';
import type { Read, Transport } from '../client/calls.ts';
import { broken, ClientError } from '../client/client-error.ts';
import {
  eventsOf,
  type FeedEvent,
  type Followed,
  type FollowedFeed,
  type FollowedRun,
  type Numbered,
  type Reconnect,
} from '../client/follow.ts';
import { type HttpRequest, pathOf, query } from '../client/http.ts';
import { isJson, type Shape } from '../client/shapes.ts';
import { fail, RivuletError } from '../core/errors.ts';
import { parsedWithout, reasonOf } from '../core/json.ts';
import type { Batch } from '../core/ports/run-store.ts';
import type { Principal } from '../core/principal.ts';
import { isFinal, isSettled } from '../core/run-state.ts';
import { giveWay, type Linked, linked } from '../core/timing.ts';
import { compile } from '../core/validate.ts';
import type { Access } from '../engine/access.ts';
import { newId } from '../engine/ids.ts';
import { checkJsonSize } from '../http/limits/json-size.ts';
import type { HttpLimits } from '../http/limits/limits.ts';
import { fromTexts } from '../http/requests/from-texts.ts';
import { agentOperations } from '../protocols/acp/agents.ts';
import type { Operation } from '../protocols/acp/operation.ts';
import { createRun, listRunEvents, runOperations, watchRuns } from '../protocols/acp/runs.ts';
import { sessionOperations } from '../protocols/acp/sessions.ts';
import type { Event } from '../schema/event.ts';
import type { RunStatus } from '../schema/run.ts';

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

/** A principal that the app has authenticated itself. */
export type CustomPrincipal = Omit<Principal, 'kind'>;

/** The operations, and the patterns of their requests. */
const routes = Object.values<Operation>({ ...agentOperations, ...runOperations, ...sessionOperations }).map(
  (operation) => ({ operation, pattern: new RegExp(`^${operation.route.replace(/:(\w+)/, '(?<$1>[^/]+)')}$`) }),
);

/** What a request has beside its method and path. */
interface Rest extends HttpRequest {
  readonly params?: object;
  readonly search?: string;
}

/** The events that one HTTP stream would carry: of a run, or of a feed. */
interface Stream<Together> {
  readonly batches: AsyncIterable<Together>;
  readonly numbered: (batch: Together) => Iterable<Numbered>;
  /** Whether the last event that was read ends the stream. */
  readonly isOver: () => boolean;
  readonly close: (left: boolean) => void;
}

/**
 * Carries calls to the engine of this process: the operations, checks, answers and errors of a server. Input is copied as
 * JSON, and output is parsed from JSON, so that callers and runs share no object.
 */
export class InProcess implements Transport {
  readonly channel = 'in-process';
  readonly #options: InProcessOptions;
  /** The open readers of all principals. */
  readonly #readers: { readonly open: Set<Linked>; stopping: boolean };

  constructor(options: InProcessOptions, readers = { open: new Set<Linked>(), stopping: false }) {
    this.#options = options;
    this.#readers = readers;
  }

  /** The calls of a principal, which sees only what it owns. Its readers end with those of this one. */
  as(principal: CustomPrincipal): InProcess {
    const access = this.#options.access.as({ ...principal, kind: 'custom' });
    return new InProcess({ ...this.#options, access }, this.#readers);
  }

  send(method: string, path: string, request?: HttpRequest): Promise<unknown> {
    return this.json(method, path, isJson, request);
  }

  json<T>(method: string, path: string, _: Shape<T>, { signal, ...request }: HttpRequest = {}): Promise<T> {
    return this.#guarded(async () => {
      const [place = '', search] = path.split('?');
      const [operation, params] = routeOf(`${method} /${place}`);
      const answer = await this.#answer(operation, { ...request, params, search });
      return JSON.parse(
        operation.json?.(answer) ?? (typeof answer === 'string' ? answer : JSON.stringify(answer ?? null)),
      );
    }, signal);
  }

  async *read(...[source, options, left, isLoop]: Read): AsyncGenerator<Event | FeedEvent, void, undefined> {
    // Before the retries: a runtime that stops would refuse every attempt, and the reader would retry for ever.
    if (this.#readers.stopping) throw this.#refusal(fail('stopping'));
    // The caller's signal may outlive many readers.
    const follower = linked(options.signal);
    this.#readers.open.add(follower);
    try {
      const connect = (one: Followed, ended: AbortSignal) =>
        'filter' in one
          ? this.#stream(() => this.#openFeed(one), ended)
          : this.#stream(() => this.#openRun(one), ended);
      const { signal } = follower;
      yield* eventsOf(connect, this.#options.reconnect, source, { ...options, signal }, left, isLoop);
    } finally {
      this.#readers.open.delete(follower);
      follower.unlink();
    }
  }

  /** Refuses calls from now on. Open readers end when the engine has stopped, with the error of a refused call. */
  async stop(engine: { stop(): Promise<void> }): Promise<void> {
    this.#readers.stopping = true;
    await engine.stop().finally(() => {
      const stopping = this.#refusal(fail('stopping'));
      for (const follower of this.#readers.open) follower.abort(stopping);
    });
  }

  async *#stream<Together>(
    open: () => Promise<Stream<Together>>,
    signal: AbortSignal,
  ): AsyncGenerator<Iterable<Numbered>, void, undefined> {
    // Without the signal: if the caller leaves while the run begins, the disconnect policy of the run applies.
    const { batches, numbered, isOver, close } = await this.#guarded(open);
    // At once: a loop may be busy with an event, and come back late or never.
    const leave = (): void => close(true);
    let left = true;
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    try {
      for await (const batch of batches) {
        yield numbered(batch);
        await giveWay();
      }
      signal.throwIfAborted();
      left = false;
      if (isOver()) return;
      throw this.#readers.stopping
        ? this.#refusal(fail('stopping'))
        : broken('interrupted', 'The stream ended before its run.');
    } catch (error) {
      left = signal.aborted;
      throw left ? signal.reason : this.#refusal(error, 0);
    } finally {
      signal.removeEventListener('abort', leave);
      close(left);
    }
  }

  /** The events of a run that this begins, until it settles; of an existing run, all after the cursor. */
  async #openRun(source: FollowedRun): Promise<Stream<Batch>> {
    const { access } = this.#options;
    const isEnd: (status: RunStatus) => boolean = 'begin' in source ? isSettled : isFinal;
    const { run_id, ...options } = await this.#found(source);
    const cursor = await access.openCursor(run_id, options);
    const leave = access.connectReader(cursor);
    let ended = cursor.exhausted;
    return {
      batches: cursor,
      *numbered({ first, lines }) {
        for (const [index, line] of lines.entries()) {
          const event: Event = JSON.parse(line);
          ended = 'run' in event && isEnd(event.run.status);
          yield { id: first + index, event };
        }
      },
      isOver: () => ended,
      close: (left) => {
        cursor.close();
        // When the runtime stops, the disconnect policy does not apply: the next process continues the run.
        leave(left && !ended && !this.#readers.stopping);
      },
    };
  }

  async #found(source: FollowedRun) {
    if ('begin' in source) {
      const { run_id, after } = await this.#answer(createRun, source.begin);
      return { run_id, after, until: 'settled' } as const;
    }
    const { run_id, after } = source;
    pathOf('runs', run_id);
    const headers = { 'Last-Event-ID': String(after) };
    const { cursor, ...run } = await this.#answer(listRunEvents, { params: { run_id }, headers });
    return { ...run, ...cursor };
  }

  async #openFeed({ filter, after }: FollowedFeed) {
    const headers = { 'Last-Event-ID': String(after) };
    const reader = await this.#answer(watchRuns, { search: query(filter), headers });
    return {
      batches: reader,
      numbered: (changes: readonly { type: string; data: string; position?: number }[]): Numbered[] =>
        changes.map(({ type, data, position = 0 }) => ({ id: position, event: { type, ...JSON.parse(data) } })),
      isOver: () => false,
      close: () => reader.close(),
    };
  }

  /** Checks a request as a server does, and does what the operation does. */
  #answer<Answer>(
    operation: Operation<Answer>,
    { params = {}, search, headers: given = {}, body }: Rest,
  ): Promise<Answer> {
    const headers = textsOf(given);
    checkedBy(operation.headers, headers, 'headers');
    return operation.call(this.#options.access, {
      params: fromUrl(operation.params, params, 'path'),
      query: fromUrl(operation.query, Object.fromEntries(new URLSearchParams(search)), 'query'),
      headers,
      body: body && checkedBy(operation.body, this.#parsed(body), 'body'),
    });
  }

  /** A copy of a body, as a server parses it. @throws RivuletError `body_not_json`, `body_too_large`, and as `checkJsonSize` */
  #parsed(body: unknown): unknown {
    const { bodyLimit, bodyValues } = this.#options.limits;
    const text = jsonOf(body);
    if (Buffer.byteLength(text) > bodyLimit) throw fail('body_too_large');
    checkJsonSize(text, bodyValues);
    return parsedWithout(text, () => {
      throw fail('body_not_json', 'it has the key __proto__ or constructor.prototype');
    });
  }

  /** @throws ClientError, or the reason of the signal */
  async #guarded<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
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

const checkedBy = (schema: TSchema | undefined, value: unknown, place: string): unknown =>
  schema === undefined ? value : compile(schema, place)(value);

const fromUrl = (schema: TSchema | undefined, texts: object, place: string): unknown =>
  schema && checkedBy(schema, fromTexts(schema, texts), place);

/** The headers that are defined, as a server gets them. */
const textsOf = (headers: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), `${value}`]])),
  );

/** The operation of a request, and what its path has for the parameters of the route. */
function routeOf(request: string): [Operation, params: object] {
  for (const { operation, pattern } of routes) {
    const match = pattern.exec(request);
    if (match === null) continue;
    const params = Object.entries(match.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)]);
    return [operation, Object.fromEntries(params)];
  }
  throw new Error(`no operation has the route of ${request}`);
}

/** @throws RivuletError `body_not_json` */
function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw fail('body_not_json', reasonOf(error).replace(/\.$/, ''));
  }
}

/** Settles as the work does, or rejects as soon as the signal fires; the work goes on. */
const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort);
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
  });
