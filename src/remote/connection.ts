import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, Transform } from 'node:stream';
import { type MonoTypeOperatorFunction, retry, timer } from 'rxjs';
import { ClientError } from '../client/client-error.ts';
import type { AgentContext } from '../core/agent.ts';
import { AgentError } from '../core/errors.ts';
import { backoff, linked, spread } from '../core/timing.ts';
import { addressRule } from '../http/outbound/address-guard.ts';
import { guardedRequest } from '../http/outbound/guarded-request.ts';

/** A value, or a function of the context of the run that makes the request; undefined outside of a run. */
export type FromContext<T> = T | ((context: AgentContext | undefined) => T | Promise<T>);

/** How another server is reached. */
export interface ConnectionOptions {
  /** Sent as `Authorization: Bearer`. A function is called for each request; `context.principal` is the caller. */
  readonly token?: FromContext<string | undefined>;
  /** Sent with every request, beside the trace context of the run. A function is called for each request. */
  readonly headers?: FromContext<Readonly<Record<string, string>>>;
  /** Private addresses or CIDR ranges that may be reached, such as `127.0.0.1`. Default none: only public addresses. */
  readonly allowNetworks?: readonly string[];
  /**
   * Milliseconds without a whole answer or event of the other server before a connection counts as broken; 0 for never.
   * Comments in a stream do not count. Default 45,000.
   */
  readonly idleTimeout?: number;
  /** Consecutive attempts without an answer before the run fails. Default 7, which take about a minute. */
  readonly retries?: number;
  /** Milliseconds before the first of these attempts; each further one waits twice as long. Default 500. */
  readonly delay?: number;
}

/** The other server is gone, full or silent: another attempt may succeed. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** Reaches one server, for any number of runs. */
export class Connection {
  readonly idleTimeout: number;
  readonly retries: number;
  readonly delay: number;
  readonly #options: ConnectionOptions;
  readonly #isAllowed: (address: string) => boolean;

  /** @throws Error that names a text of `allowNetworks` which is no network */
  constructor(options: ConnectionOptions) {
    const { idleTimeout = 45_000, retries = 7, delay = 500, allowNetworks = [] } = options;
    this.idleTimeout = idleTimeout;
    this.retries = retries;
    this.delay = delay;
    this.#options = options;
    this.#isAllowed = addressRule(allowNetworks, 'allowNetworks');
  }

  async headers(context?: AgentContext): Promise<Record<string, string>> {
    const [headers, token] = [await given(this.#options.headers, context), await given(this.#options.token, context)];
    return {
      ...context?.trace(),
      ...headers,
      // Without the line end of a file.
      ...(token && { authorization: `Bearer ${token.replace(/[^!-~]/g, '')}` }),
    };
  }

  /** A `fetch` that connects to permitted addresses only, and follows no redirect. */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    // Without the signal: a Request listens to it until it is collected, and then its own signal never fires.
    const request = new Request(input, { ...init, signal: null });
    const target = new URL(request.url);
    if (!/^https?:$/.test(target.protocol)) throw new TypeError('only http and https URLs are reached');
    const text = request.body === null ? undefined : await request.text();
    const { signal, abort, unlink } = linked(init?.signal ?? (input instanceof Request ? input.signal : undefined));
    const tooLate = (): void => abort(new Unreachable('it did not answer in time'));
    const timer = this.idleTimeout > 0 ? setTimeout(tooLate, this.idleTimeout) : undefined;
    const answered = guardedRequest(target, this.#isAllowed, {
      method: request.method,
      headers: Object.fromEntries(request.headers),
      ...(text !== undefined && { body: text }),
      signal,
    });
    answered.then((response) => response.once('close', unlink), unlink);
    const response = await answered.finally(() => clearTimeout(timer));
    const { statusCode: status = 0, headers } = response;
    // The other server may answer with a stream where none was asked for. Its reader would keep all of that.
    const isStream = [request.headers.get('accept'), headers['content-type']].every(isEventStream);
    const body = [204, 205, 304].includes(status) ? null : bodyOf(bounded(response, isStream, this.idleTimeout));
    // A server may send a body, even an endless one, with a status that has none.
    if (body === null) response.destroy();
    const pairs = Object.entries(headers).map(([name, value = '']): [string, string] => [name, String(value)]);
    return new Response(body, { status, headers: pairs });
  };

  /**
   * A `fetch` with the headers of a run. They are sent to `origin` only: what the other server answers may name further
   * addresses, which the operator has not chosen.
   */
  fetchFor(context: AgentContext | undefined, origin: string): typeof fetch {
    return async (input, init) => {
      const headers = new Headers(init?.headers);
      const isChosen = new URL(input instanceof Request ? input.url : input).origin === origin;
      const own = isChosen ? await this.headers(context) : {};
      for (const [name, value] of Object.entries(own)) headers.set(name, value);
      return this.fetch(input, { ...init, headers });
    };
  }

  /** Subscribes again after errors that another attempt may not have; a value resets the count. */
  retrying<T>(mayRetry: (error: unknown) => boolean): MonoTypeOperatorFunction<T> {
    return retry({
      count: this.retries,
      resetOnSuccess: true,
      delay: (error, count) => {
        if (!mayRetry(error)) throw error;
        return timer(spread(backoff(count, this.delay, Number.POSITIVE_INFINITY)));
      },
    });
  }
}

const isEventStream = (types: string | null | undefined): boolean => /\btext\/event-stream\b/i.test(types ?? '');

/** Bytes of a message, which its reader has to keep until it is whole. */
const maxMessage = 64 * 1024 * 1024;

/** Bytes of a message that a slow connection sends in a millisecond: a large message has more time. */
const slowest = 64;
/** Times of `idleTimeout` for which comments alone keep a stream open: an agent may work that long on one value. */
const quietTimes = 14;

/** An answer without an end. As a ClientError with a status of 200, the client does not ask for the answer again. */
class TooLarge extends ClientError {
  constructor() {
    super({ code: 'remote_too_large', status: 200, message: `A message has more than ${maxMessage} bytes.` });
  }
}

/** The AgentError for an answer that is too large, also where a library has wrapped the error; undefined for other errors. */
export function tooLargeIn(thrown: unknown): AgentError | undefined {
  if (thrown instanceof TooLarge) return new AgentError(thrown.code, thrown.message);
  return thrown instanceof Error ? tooLargeIn(thrown.cause) : undefined;
}

/**
 * Fails where a message has too many bytes, or takes too long. A message is a body, or an event of a stream with all comments
 * before the event.
 */
function bounded(response: IncomingMessage, isStream: boolean, idleTimeout: number): Readable {
  const events = isStream ? new EventEnds() : undefined;
  let bytes = 0;
  let left = idleTimeout;
  let since = performance.now();
  let valueAt = since;
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    since = performance.now();
    if (idleTimeout > 0) timer = setTimeout(silent, left);
  };
  const silent = (): void => {
    // The time that the reader takes does not count.
    if (counted.readableLength > 0) wait();
    else counted.destroy(new Unreachable('it sent nothing for too long'));
  };
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      clearTimeout(timer);
      const rest = events?.restAfter(chunk);
      bytes = rest ?? bytes + chunk.length;
      const now = performance.now();
      if (rest !== undefined) valueAt = now;
      const isQuiet = events !== undefined && now - valueAt < quietTimes * idleTimeout;
      left = rest !== undefined || isQuiet ? idleTimeout : left - (now - since) + chunk.length / slowest;
      if (bytes > maxMessage) return done(new TooLarge());
      wait();
      done(null, chunk);
    },
    flush(done) {
      clearTimeout(timer);
      done();
    },
  });
  wait();
  return pipeline(response, counted, () => clearTimeout(timer));
}

/** Finds the ends of events in a stream. Comments and blank lines alone are no event. */
class EventEnds {
  /** The end of the stream so far, for ends and names that are cut in two. */
  #before = '\n';
  /** Whether a line with data has come since the last end. */
  #hasData = false;

  /** The bytes of a chunk after the last end; undefined where no event ends in the chunk. */
  restAfter(chunk: Buffer): number | undefined {
    const text = this.#before + chunk.toString('latin1');
    const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\n\r\n'), text.lastIndexOf('\r\r'));
    const data = text.search(dataLine);
    const isEnd = this.#hasData ? end !== -1 : data !== -1 && data < end;
    // Lines after the last end belong to the next event.
    this.#hasData = dataLine.test(text.slice(Math.max(end, 0))) || (this.#hasData && end === -1);
    this.#before = text.slice(-keptChars);
    return isEnd ? text.length - end : undefined;
  }
}

const dataLine = /[\r\n]data[:\r\n]/;
/** Characters of a line end and `data`. */
const keptChars = 5;

// Node and the DOM each have a type for the same web stream.
const bodyOf = (response: Readable): ReadableStream<Uint8Array> =>
  Readable.toWeb(response) as ReadableStream<Uint8Array>;

const given = <T>(value: FromContext<T> | undefined, context: AgentContext | undefined): T | Promise<T> | undefined =>
  value instanceof Function ? value(context) : value;

/** Imports an optional package. @throws AgentError `package_missing` that names what to install */
export async function optional<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new AgentError('package_missing', `This needs the package ${name}; install it with "npm install ${name}".`);
  }
}
