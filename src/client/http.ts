import { broken, ClientError, failure, notUnderstood, refusal } from './client-error.ts';
import { IdleTimeout, readChunks } from './idle-timeout.ts';
import type { Shape } from './shapes.ts';

export interface HttpOptions {
  /** The server's URL, such as `https://agents.example.com`; in a browser it may be relative to the page. */
  readonly url: string;
  /**
   * A key or token of the server, sent with every request. A function is called for each request, also when a stream
   * reconnects, and may return a fresh one; an empty text sends none.
   */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** Sent with every request. A function is called for each request. */
  readonly headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /**
   * Milliseconds to wait for the response headers, and for each chunk of a body that is not a stream; then the call fails
   * with `silent`. A request with a body gets a second more for each 64 kB. Default 30,000.
   */
  readonly timeout?: number;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface HttpRequest {
  /** Any JSON value. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal | undefined;
}

const defaultTimeout = 30_000; // milliseconds
/** Bytes of a body that a slow connection sends in a millisecond. */
const slowUpload = 64;
/** Bytes of a response that are read; a Run carries all of its output. A longer response is `not_understood`. */
const maxBytes = 64 * 1024 * 1024;
/** Bytes of an error response that are read: enough for an Error object. */
const maxErrorBytes = 64 * 1024;

/** Sends requests to one server. A call fails with a ClientError, or with the signal's reason. */
export class Http {
  readonly #base: URL;
  readonly #token: HttpOptions['token'];
  readonly #headers: HttpOptions['headers'];
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ url, token, headers, timeout = defaultTimeout, fetch = globalThis.fetch }: HttpOptions) {
    this.#base = new URL(url, globalThis.location?.href);
    // `localhost:8000` is a URL as well, with `localhost:` as its scheme.
    if (!this.#base.protocol.startsWith('http')) throw new TypeError(`Expected http://HOST, got ${url}`);
    this.#base.pathname = this.#base.pathname.replace(/\/?$/, '/');
    this.#token = token;
    this.#headers = headers;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /**
   * Resolves to the response when its headers have arrived with a 2xx status. `path` is relative to the server's URL.
   * @throws TypeError where the body is not JSON, or a header cannot be sent
   */
  async send(method: string, path: string, { body, headers = {}, signal }: HttpRequest = {}): Promise<Response> {
    // Before all that may be tried again: no attempt could send it.
    const json = body === undefined ? undefined : JSON.stringify(body);
    const own = new Headers(defined(headers));
    try {
      const all = await this.#configuredHeaders();
      for (const [name, value] of own) all.set(name, value);
      if (json !== undefined) all.set('Content-Type', 'application/json');
      const idleTimeout = new IdleTimeout(this.#timeout + Math.ceil((json?.length ?? 0) / slowUpload), signal);
      // Browsers refuse fetch with another `this`, so it is not called as a member.
      const fetch = this.#fetch;
      const pending = fetch(new URL(path, this.#base), {
        method,
        headers: all,
        cache: 'no-store',
        // A redirect would send body and headers to a URL that the caller did not choose.
        redirect: 'manual',
        signal: idleTimeout.signal,
        ...(json !== undefined && { body: json }),
      });
      const response = await idleTimeout.race(pending);
      if (response.ok) return response;
      const text = await readText(response, idleTimeout, maxErrorBytes);
      throw refusal(response, text);
    } catch (error) {
      throw failure(error, signal);
    }
  }

  /** @throws ClientError `not_understood` if the response does not have the shape */
  async json<T>(method: string, path: string, shape: Shape<T>, request: HttpRequest = {}): Promise<T> {
    const response = await this.send(method, path, request);
    const text = await readText(response, new IdleTimeout(this.#timeout, request.signal), maxBytes);
    try {
      const value = JSON.parse(text);
      if (shape(value)) return value;
    } catch {}
    throw notUnderstood(`${method} ${path}`, response.status);
  }

  async #configuredHeaders(): Promise<Headers> {
    try {
      const headers = new Headers(await given(this.#headers));
      const token = await given(this.#token);
      // Without the line end of a file. `Headers` would refuse it with an error that repeats the token.
      if (token) headers.set('Authorization', `Bearer ${token.replace(/[^!-~]/g, '')}`);
      return headers;
    } catch (cause) {
      throw broken('headers', `headers or token threw: ${cause}`, cause);
    }
  }
}

const given = <T>(value: T | (() => T | Promise<T>)): T | Promise<T> => (value instanceof Function ? value() : value);

/** Reads at most `limit` bytes of a body as text. */
async function readText({ body }: Response, idleTimeout: IdleTimeout, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let left = limit;
  if (body === null) return text;
  for await (const chunk of readChunks(body, idleTimeout)) {
    text += decoder.decode(chunk.subarray(0, left), { stream: true });
    left -= chunk.length;
    if (left <= 0) break;
  }
  return text;
}

/** `runs/ID`. @throws ClientError as the server's refusal, where a URL cannot have the id in its path: `..` is another path */
export function pathOf(kind: 'runs' | 'agents' | 'sessions' | 'resources', id: string): string {
  if (/^\.{0,2}$|\p{Cs}/u.test(id)) {
    throw new ClientError({ code: 'invalid_input', status: 422, message: `${JSON.stringify(id)} cannot be an id.` });
  }
  return `${kind}/${encodeURIComponent(id)}`;
}

/** `?a=1&b=2` of the values that are defined, or an empty string. */
export const query = (values: object): string => `?${new URLSearchParams(defined(values))}`.replace(/\?$/, '');

/** The values that JSON has: those that are defined. */
const defined = (values: object): Record<string, string> => JSON.parse(JSON.stringify(values));
