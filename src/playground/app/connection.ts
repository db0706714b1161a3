import { signal } from '@preact/signals';
import type { Break } from '../../client/client.ts';
import type { HttpRequest } from '../inspector/request-code.ts';

/** The failed attempts, and the time of the next one (epoch, milliseconds); both absent if no stream reconnects. */
export interface Disconnection {
  readonly attempt?: number;
  readonly retryAt?: number;
}

/** A request to the server, with all that is needed to repeat it. */
export interface LoggedRequest extends HttpRequest {
  readonly key: number;
  /** Status of the response; undefined while pending, 0 if the request failed. */
  readonly status: number | undefined;
  /** Milliseconds until the response headers arrived. */
  readonly time: number | undefined;
  /** The run that the request is about, if known. */
  readonly run_id: string | undefined;
  /** How often it was sent; a repeated GET is logged once. */
  readonly count: number;
}

const maxRequests = 100;

/** In the place of a token in code, which is shown, copied, and may be on a shared screen. */
export const shownToken = 'YOUR_TOKEN';

const withoutToken = ([name, value]: [string, string]): [string, string] =>
  name === 'authorization' ? [name, `Bearer ${shownToken}`] : [name, value];

/** A request as a text, to compare it with others. */
const textOf = ({ method, url, headers, body }: HttpRequest): string => JSON.stringify([method, url, headers, body]);

/** The page's requests to the server, and whether the server can be reached. */
export class Connection {
  /** Undefined while the server can be reached. */
  readonly disconnection = signal<Disconnection | undefined>(undefined);
  /** Newest first. */
  readonly requests = signal<readonly LoggedRequest[]>([]);
  readonly #onRefused: () => void;
  #next = 1;

  /** A response 401 calls `onRefused`. */
  constructor(onRefused: () => void) {
    this.#onRefused = onRefused;
  }

  /** A stream has ended early, and is opened again. */
  readonly onBreak = ({ attempt, delay }: Break): void => {
    this.disconnection.value = { attempt, retryAt: Date.now() + delay };
  };

  /** Sends a request and logs it. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const startedAt = performance.now();
    const key = this.#add(String(input), init);
    try {
      const response = await fetch(input, init);
      this.disconnection.value = undefined;
      if (response.status === 401) this.#onRefused();
      const run_id = response.headers.get('Run-ID') ?? undefined;
      this.#change(key, { status: response.status, time: performance.now() - startedAt, ...(run_id && { run_id }) });
      return response;
    } catch (error) {
      if (!init?.signal?.aborted) this.disconnection.value ??= {};
      this.#change(key, { status: 0, time: performance.now() - startedAt });
      throw error;
    }
  };

  #add(url: string, { method = 'GET', headers, body }: RequestInit = {}): number {
    const request = {
      method,
      url,
      headers: [...new Headers(headers)].map(withoutToken),
      body: typeof body === 'string' ? body : undefined,
      status: undefined,
      time: undefined,
      run_id: /\/runs\/([0-9a-f-]{36})/.exec(url)?.[1],
      count: 1,
    };
    const repeated = this.requests.value.find((logged) => method === 'GET' && textOf(logged) === textOf(request));
    if (repeated !== undefined) {
      this.#change(repeated.key, { count: repeated.count + 1 });
      return repeated.key;
    }
    const key = this.#next++;
    this.requests.value = [{ key, ...request }, ...this.requests.value].slice(0, maxRequests);
    return key;
  }

  #change(key: number, change: Partial<LoggedRequest>): void {
    this.requests.value = this.requests.value.map((logged) => (logged.key === key ? { ...logged, ...change } : logged));
  }
}
