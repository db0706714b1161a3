import { chunks } from './chunks.ts';
import { broken, ClientError, failure, notUnderstood, refusal } from './client-error.ts';
import type { Shape } from './shapes.ts';
import { Watchdog } from './watchdog.ts';

export interface HttpOptions {
  /** Where the server is, such as `https://agents.example.com`; in a browser also relative to the page. */
  readonly url: string;
  /** Sent with every request. A function is called for each one, so that each has a fresh token. */
  readonly headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /**
   * Milliseconds to wait for an answer to begin, and for each next piece of one that is no stream; then the call fails
   * with `silent`. A request with a body has a second more for each 64 kB of it. Default 30,000.
   */
  readonly timeout?: number;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface HttpRequest {
  /** Anything that JSON can say. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal | undefined;
}

export type Method = 'GET' | 'POST' | 'DELETE';

const defaultTimeout = 30_000; // milliseconds
/** Bytes of a body that a slow line sends in a millisecond. */
const slowest = 64;
/** Bytes of an answer that are read: a Run has all of its output. What is longer is not understood. */
const mostBytes = 64 * 1024 * 1024;
/** Bytes of an error that are read: enough for an Error object, too few to fill the memory. */
const mostErrorBytes = 64 * 1024;

const never = new AbortController().signal;

/** Requests of one server. What fails, fails with a ClientError, or with the reason of the signal. */
export class Http {
  readonly #base: URL;
  readonly #headers: HttpOptions['headers'];
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ url, headers, timeout = defaultTimeout, fetch = globalThis.fetch }: HttpOptions) {
    this.#base = new URL(url, globalThis.location?.href);
    if (!this.#base.pathname.endsWith('/')) this.#base.pathname += '/';
    this.#headers = headers;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /** Resolves to the answer when its headers are here and say 2xx. `path` is relative to the server's address. */
  async send(
    method: Method,
    path: string,
    { body, headers = {}, signal = never }: HttpRequest = {},
  ): Promise<Response> {
    try {
      const all = await this.#given();
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) all.set(name, value);
      const json = body === undefined ? undefined : JSON.stringify(body);
      if (json !== undefined) all.set('Content-Type', 'application/json');
      const watchdog = new Watchdog(signal, this.#timeout + Math.ceil((json?.length ?? 0) / slowest));
      // A method of this object would give fetch a `this`, which browsers refuse.
      const fetch = this.#fetch;
      const answer = fetch(new URL(path, this.#base), {
        method,
        headers: all,
        cache: 'no-store',
        // To follow one would send the body and the headers to an address that the caller did not choose.
        redirect: 'manual',
        signal: watchdog.signal,
        ...(json !== undefined && { body: json }),
      });
      const response = await watchdog.inTime(answer);
      if (response.ok) return response;
      const text = await readText(response, watchdog, mostErrorBytes);
      throw response.status < 400 ? redirected(response) : refusal(response, text);
    } catch (error) {
      throw failure(error, signal);
    }
  }

  /** @throws ClientError `not_understood` where the answer does not have the shape */
  async json<T>(method: Method, path: string, shape: Shape<T>, request: HttpRequest = {}): Promise<T> {
    const response = await this.send(method, path, request);
    const text = await readText(response, new Watchdog(request.signal ?? never, this.#timeout), mostBytes);
    try {
      const value = JSON.parse(text);
      if (shape(value)) return value;
    } catch {}
    const message = `${method} ${path} answered something that is not understood; is there a Rivulet?`;
    throw notUnderstood(message, response.status);
  }

  async #given(): Promise<Headers> {
    try {
      return new Headers(typeof this.#headers === 'function' ? await this.#headers() : this.#headers);
    } catch (cause) {
      throw broken('headers', `The function for the headers threw: ${cause}`, cause);
    }
  }
}

// Browsers hide the status of a redirect that is not followed, which is 0 then, and where it leads to.
function redirected({ status, headers }: Response): ClientError {
  const message = `The server redirects to ${headers.get('Location') ?? 'another address'}, which is not followed.`;
  return new ClientError({ code: 'redirected', status: status || 302, message });
}

/** A body as text, no more of it than `most` bytes: the rest is not read. */
async function readText({ body }: Response, watchdog: Watchdog, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let left = most;
  if (body === null) return text;
  for await (const chunk of chunks(body, watchdog)) {
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

/** `?a=1&b=2` of what is defined, or nothing. */
export function query(values: object): string {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  return defined.length === 0 ? '' : `?${new URLSearchParams(defined.map(([name, value]) => [name, String(value)]))}`;
}
