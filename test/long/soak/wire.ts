import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

/** The connection broke before the whole response had arrived, so the outcome of the request is unknown. */
export class Cut extends Error {}

/** No response within the time-out. */
export class Hung extends Cut {}

export interface Sent {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
  /** The response arrives when the run has settled, so the time-out is longer. */
  readonly slow?: boolean;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request and its response. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** See `Sent`. */
  readonly slow: boolean;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly startedAt: number;
  /** Milliseconds until the response headers. */
  readonly duration: number;
}

export interface WireOptions {
  /** Aborts all requests. */
  readonly signal: AbortSignal;
  /** Milliseconds until a response has to begin. */
  readonly requestTimeout: number;
  readonly onResponse?: (exchange: Exchange) => void;
  /** Called when a connection breaks, with the time at which the request started. */
  readonly onCut?: (error: Cut, startedAt: number) => void;
}

/** The stream ended with an error instead of the run's last event. */
export class StreamFailed extends Error {}

/** Sends requests to one URL. It uses node:http, because fetch is several times slower, and durations are measured here. */
export class Wire {
  readonly #url: string;
  readonly #options: WireOptions;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, options: WireOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** Resolves to the response when its headers have arrived. The caller reads or destroys it. @throws Cut, Hung */
  open(path: string, sent: Sent = {}): Promise<IncomingMessage> {
    const { signal, requestTimeout, onResponse } = this.#options;
    const { body, headers, slow = false, method = body === undefined ? 'GET' : 'POST' } = sent;
    signal.throwIfAborted();
    const startedAt = performance.now();
    return new Promise<IncomingMessage>((resolve, reject) => {
      const json = body !== undefined && { 'content-type': 'application/json' };
      const options = { method, signal, agent: this.#agent, headers: { ...json, ...headers } };
      const outgoing = request(`${this.#url}${path}`, options, (response) => {
        clearTimeout(timer);
        const { statusCode: status = 0 } = response;
        onResponse?.({
          method,
          path,
          slow,
          status,
          headers: response.headers,
          startedAt,
          duration: performance.now() - startedAt,
        });
        // A caller that destroys the stream ignores its error.
        response.on('error', () => {});
        resolve(response);
      });
      const hung = new Hung(`${method} ${path} got no response within ${requestTimeout / 1000} s`);
      const timer = setTimeout(() => outgoing.destroy(hung), slow ? 10 * requestTimeout : requestTimeout);
      outgoing.on('error', (error) => {
        clearTimeout(timer);
        const cut = error instanceof Cut ? error : new Cut(`${method} ${path}: ${error.message}`);
        if (!signal.aborted) this.#options.onCut?.(cut, startedAt);
        reject(cut);
      });
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Resolves to the whole response. @throws Cut, Hung */
  async call(path: string, sent: Sent = {}): Promise<WireResponse> {
    const response = await this.open(path, sent);
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  }

  /** The body of a GET that has to succeed. @throws Cut, Hung, Error */
  async get(path: string): Promise<string> {
    const { status, text } = await this.call(path);
    if (status !== 200) throw new Error(`GET ${path} responded with ${status}: ${text}`);
    return text;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The body of a response. @throws Cut */
export async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of response) text += chunk;
  } catch (error) {
    throw new Cut(`a response was cut: ${error instanceof Error ? error.message : error}`);
  }
  return text;
}

export interface Frame {
  readonly id: number;
  readonly line: string;
}

/**
 * The frames of a stream, until it ends or breaks. Leaving the loop closes the stream.
 * @throws StreamFailed, or Error if the stream has something other than events
 */
export async function* frames(response: IncomingMessage): AsyncGenerator<Frame, void> {
  let rest = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of chunksOf(response)) {
      const blocks = (rest + chunk).split('\n\n');
      // An incomplete frame is ignored if the stream breaks.
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, line, id] = /^(?::\n)*(?:retry: \d+\n)?data: (.*)\nid: (\d+)$/.exec(block) ?? [];
        if (id !== undefined && line !== undefined) yield { id: Number(id), line };
        else if (/^(:\n)*data: \{"type":"error"/.test(block)) throw new StreamFailed(block);
        else throw new Error(`a stream had the frame ${block}`);
      }
    }
    if (response.complete && !/^(:\n|retry: \d+\n)*$/.test(rest))
      throw new Error(`a stream ended in the middle of a frame: ${rest}`);
  } finally {
    response.destroy();
  }
}

async function* chunksOf(response: IncomingMessage): AsyncGenerator<string, void> {
  try {
    yield* response;
  } catch {
    // A broken stream ends like a complete one; the reader decides whether it may.
  }
}
