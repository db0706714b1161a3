import { ClientError, failure, refusal } from './client-error.ts';

export interface HttpOptions {
  /** Where the server is, such as `https://agents.example.com`; in a browser also relative to the page. */
  readonly url: string;
  /** Sent with every request. A function is called for each one, so that each has a fresh token. */
  readonly headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
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

/** Requests of one server. What fails, fails with a ClientError, or with the reason of the signal. */
export class Http {
  readonly #base: URL;
  readonly #headers: HttpOptions['headers'];
  readonly #fetch: typeof globalThis.fetch;

  constructor({ url, headers, fetch = globalThis.fetch }: HttpOptions) {
    this.#base = new URL(url, globalThis.location?.href);
    if (!this.#base.pathname.endsWith('/')) this.#base.pathname += '/';
    this.#headers = headers;
    this.#fetch = fetch;
  }

  /** Resolves to the answer when its headers are here and say 2xx. `path` is relative to the server's address. */
  async send(method: Method, path: string, { body, headers = {}, signal }: HttpRequest = {}): Promise<Response> {
    try {
      const all = await this.#given();
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) all.set(name, value);
      if (body !== undefined) all.set('Content-Type', 'application/json');
      // A method of this object would give fetch a `this`, which browsers refuse.
      const fetch = this.#fetch;
      const response = await fetch(new URL(path, this.#base), {
        method,
        headers: all,
        cache: 'no-store',
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal !== undefined && { signal }),
      });
      if (response.ok) return response;
      throw await refusal(response);
    } catch (error) {
      throw failure(error, signal);
    }
  }

  async json<T>(method: Method, path: string, request: HttpRequest = {}): Promise<T> {
    const response = await this.send(method, path, request);
    const text = await response.text().catch((error: unknown) => {
      throw failure(error, request.signal);
    });
    try {
      return JSON.parse(text);
    } catch (cause) {
      const message = `${method} ${path} answered something that is not JSON; is there a Rivulet at ${this.#base}?`;
      throw new ClientError({ code: 'not_understood', status: response.status, message, cause });
    }
  }

  async #given(): Promise<Headers> {
    try {
      return new Headers(typeof this.#headers === 'function' ? await this.#headers() : this.#headers);
    } catch (cause) {
      const message = `The function for the headers threw: ${cause instanceof Error ? cause.message : cause}`;
      throw new ClientError({ code: 'headers', status: 0, message, cause });
    }
  }
}

/** `?a=1&b=2` of what is defined, or nothing. */
export function query(values: object): string {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  return defined.length === 0 ? '' : `?${new URLSearchParams(defined.map(([name, value]) => [name, String(value)]))}`;
}
