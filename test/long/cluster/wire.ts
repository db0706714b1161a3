import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

/** The connection broke before the answer was whole: nothing is known of what came of the request. */
export class Cut extends Error {}

/** Nothing came for longer than anybody waits. */
export class Hung extends Cut {}

export interface Sent {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
  /** Its answer comes when its run is over, which may take its time. */
  readonly slow?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request that was answered, in milliseconds from its beginning to the head of its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** See `Sent`. */
  readonly slow: boolean;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly began: number;
  readonly took: number;
}

export interface WireOptions {
  /** Ends whatever is under way. */
  readonly signal: AbortSignal;
  /** Milliseconds that an answer may take. */
  readonly requestTimeout: number;
  readonly answered?: (exchange: Exchange) => void;
}

/** A stream that ended with an error instead of its run's last event. */
export class Failed extends Error {}

/** Requests to one address. node:http, because fetch takes several times as long for what is measured here. */
export class Wire {
  readonly #url: string;
  readonly #options: WireOptions;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, options: WireOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** A request, and the head of its answer; whoever asked reads the body or destroys it. @throws Cut, Hung */
  open(path: string, sent: Sent = {}): Promise<IncomingMessage> {
    const { signal, requestTimeout, answered } = this.#options;
    const { body, headers, slow = false, method = body === undefined ? 'GET' : 'POST' } = sent;
    signal.throwIfAborted();
    const began = performance.now();
    return new Promise<IncomingMessage>((resolve, reject) => {
      const json = body !== undefined && { 'content-type': 'application/json' };
      const options = { method, signal, agent: this.#agent, headers: { ...json, ...headers } };
      const outgoing = request(`${this.#url}${path}`, options, (response) => {
        clearTimeout(timer);
        const { statusCode: status = 0 } = response;
        answered?.({
          method,
          path,
          slow,
          status,
          headers: response.headers,
          began,
          took: performance.now() - began,
        });
        // Whoever lets go of a stream does not care how that ends.
        response.on('error', () => {});
        resolve(response);
      });
      const late = new Hung(`${method} ${path} was not answered in ${requestTimeout / 1000} s`);
      const timer = setTimeout(() => outgoing.destroy(late), slow ? 10 * requestTimeout : requestTimeout);
      outgoing.on('error', (error) => {
        clearTimeout(timer);
        reject(error instanceof Cut ? error : new Cut(`${method} ${path}: ${error.message}`));
      });
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** A request and its whole answer. @throws Cut, Hung */
  async call(path: string, sent: Sent = {}): Promise<Answer> {
    const response = await this.open(path, sent);
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  }

  /** The answer to a GET that has to succeed. @throws Cut, Hung, Error */
  async get(path: string): Promise<string> {
    const { status, text } = await this.call(path);
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${text}`);
    return text;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The body of an answer. @throws Cut */
export async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of response) text += chunk;
  } catch (error) {
    throw new Cut(`an answer was cut: ${error instanceof Error ? error.message : error}`);
  }
  return text;
}

export interface Frame {
  readonly id: number;
  readonly line: string;
}

/**
 * The frames of a stream as they come, until it ends or breaks, which a reader has to take alike.
 * Letting go of the iterator lets go of the stream. @throws Failed, or Error where there is something else in it
 */
export async function* frames(response: IncomingMessage): AsyncGenerator<Frame, void> {
  let left = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of whatComes(response)) {
      const blocks = (left + chunk).split('\n\n');
      // What was cut in the middle of a frame is no frame.
      left = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, id, line] = /^(?::\n)*(?:retry: \d+\n)?id: (\d+)\ndata: (.*)$/.exec(block) ?? [];
        if (id !== undefined && line !== undefined) yield { id: Number(id), line };
        else if (/^(:\n)*data: \{"type":"error"/.test(block)) throw new Failed(block);
        else throw new Error(`a stream had the frame ${block}`);
      }
    }
    if (response.complete && !/^(:\n|retry: \d+\n)*$/.test(left))
      throw new Error(`a stream ended in the middle of a frame: ${left}`);
  } finally {
    response.destroy();
  }
}

async function* whatComes(response: IncomingMessage): AsyncGenerator<string, void> {
  try {
    yield* response;
  } catch {
    // A stream that breaks is one that ends.
  }
}
