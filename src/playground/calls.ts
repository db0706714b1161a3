import { signal } from '@preact/signals';
import type { Line } from './line.ts';

/** A request to the server, as it can be made again. */
export interface Call {
  readonly key: number;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | undefined;
  /** Of the answer; undefined while there is none, 0 where there will be none. */
  readonly status: number | undefined;
  /** Milliseconds until the answer began. */
  readonly time: number | undefined;
  /** The run that the answer says it is about. */
  readonly run_id: string | undefined;
  /** How many times; what is asked for again and again is kept once. */
  readonly times: number;
}

const kept = 100;
/** Characters of bodies that are kept: enough for what people type, too few for their videos. */
const longestBody = 64 * 1024;

/** The calls that the page makes: a fetch, and what it was used for. */
export class Calls {
  readonly list = signal<readonly Call[]>([]);
  readonly #line: Line;
  #next = 1;

  /** `line` is told of each answer, and of each that did not come. */
  constructor(line: Line) {
    this.#line = line;
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const begun = performance.now();
    const key = this.#enter(String(input), init);
    try {
      const response = await fetch(input, init);
      this.#line.answered();
      const run_id = response.headers.get('Run-ID') ?? undefined;
      this.#change(key, { status: response.status, time: performance.now() - begun, ...(run_id && { run_id }) });
      return response;
    } catch (error) {
      if (!init?.signal?.aborted) this.#line.lost();
      this.#change(key, { status: 0, time: performance.now() - begun });
      throw error;
    }
  };

  #enter(url: string, { method = 'GET', headers, body }: RequestInit = {}): number {
    const call = {
      method,
      url,
      headers: [...new Headers(headers)],
      body: typeof body === 'string' ? body : undefined,
      status: undefined,
      time: undefined,
      run_id: /\/runs\/([0-9a-f-]{36})/.exec(url)?.[1],
      times: 1,
    };
    const before = this.list.value.find((one) => method === 'GET' && curl(one) === curl(call));
    if (before !== undefined) {
      this.#change(before.key, { times: before.times + 1 });
      return before.key;
    }
    const key = this.#next++;
    this.list.value = [{ key, ...call }, ...this.list.value].slice(0, kept);
    return key;
  }

  #change(key: number, change: Partial<Call>): void {
    this.list.value = this.list.value.map((call) => (call.key === key ? { ...call, ...change } : call));
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The call as a line for a shell. */
export function curl({ method, url, headers, body }: Pick<Call, 'method' | 'url' | 'headers' | 'body'>): string {
  const streams = headers.some(([name, value]) => name === 'accept' && value === 'text/event-stream');
  const sent = body !== undefined && body.length > longestBody ? '@body.json' : body;
  return [
    `curl${streams ? ' -N' : ''}${method === 'GET' ? '' : ` -X ${method}`} ${quote(url)}`,
    ...headers.map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(sent === undefined ? [] : [`--data-binary ${quote(sent)}`]),
  ].join(' \\\n  ');
}
