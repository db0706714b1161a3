// A page that uses the AI SDK imports this file and nothing else of the package. A test limits its size.
import { onSilentWake, onWake } from './wake.ts';

export interface ResumingFetchOptions {
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Consecutive attempts without a frame before the chat gets an error. Default 7, which take about a minute. */
  readonly retries?: number;
  /** Milliseconds before the first attempt; each further one waits twice as long. Default 500. */
  readonly delay?: number;
  /** Milliseconds without a byte before a connection counts as broken. Default 45,000; the server writes every 15,000. */
  readonly idleTimeout?: number;
}

/**
 * A `fetch` for `DefaultChatTransport` that hides the breaks of a stream from the chat. A stream that ends early goes on after
 * the last frame that the chat has, within the same response. A request without an answer is repeated with the same
 * `Idempotency-Key`, so that it makes one run. Aborting ends the request, the stream and all attempts. After `retries` attempts
 * the chat gets a TypeError. Where the server refuses to go on, the chat gets an Error with the server's text.
 */
export function resumingFetch({
  fetch: send = (input, init) => fetch(input, init),
  retries = 7,
  delay = 500,
  idleTimeout = 45_000,
}: ResumingFetchOptions = {}): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const left = new AbortController();
    const signal = AbortSignal.any([left.signal, init.signal ?? left.signal]);
    const headers = new Headers(init.headers);
    const isPost = init.method === 'POST';
    // Not randomUUID, which browsers have on https only.
    if (isPost) headers.set('Idempotency-Key', crypto.getRandomValues(new Uint32Array(4)).join());
    let failures = 0;
    let stretch: string | null | undefined;

    const open = async (url: typeof input, request: RequestInit, problem?: unknown): Promise<Response> => {
      for (;;) {
        signal.throwIfAborted();
        if (problem) {
          if (failures === retries) throw problem;
          await soon(delay * 2 ** failures++, signal);
        }
        try {
          const response = await send(url, { ...request, headers, signal });
          const { status } = response;
          // Others come from a proxy without a server, or from a server that is full or stops.
          if (failures === retries || status < (stretch ? 429 : 502)) return response;
          problem = status;
        } catch (error) {
          problem = error;
        }
      }
    };

    const first = await open(input, init);
    stretch = first.headers.get('x-workflow-run-id');
    if (!first.ok || !stretch) return first;
    const [path = '', query] = `${input}?`.split('?');
    const address = path.replace(isPost ? /\/?$/ : /\/[^/]*\/stream$/, `/${stretch}/stream`);

    async function* frames() {
      for (let { body } = first; body; ) {
        const reader = body.getReader();
        const decoder = new TextDecoder();
        let text = '';
        let reads = 0;
        const leave = () => void reader.cancel().catch(() => {});
        const asleep = onSilentWake(() => reads, leave);
        try {
          for (;;) {
            reads++;
            const { done, value } = await soon(idleTimeout, signal, reader.read());
            if (done) break;
            text += decoder.decode(value, { stream: true });
            // Not searched with regular expressions: these would take quadratic time for a large frame, and the `m` flag knows line
            // breaks, such as U+2028, that a text may have.
            const end = text.lastIndexOf('\n\n') + 2;
            if (end < 2) continue;
            const whole = text.slice(0, end);
            text = text.slice(end);
            const [, id] = /^id: (\S+)/.exec(whole.slice(whole.lastIndexOf('\nid: ') + 1)) ?? [];
            if (id) {
              headers.set('Last-Event-ID', id);
              failures = 0;
            }
            yield new TextEncoder().encode(whole);
            if (/\[DONE]\s*$/.test(whole)) return;
          }
        } catch {
          // Broken, silent or aborted.
        } finally {
          asleep();
          leave();
        }
        // The index says where to begin as long as no frame has come; an id has precedence.
        const request = { ...init, method: 'GET', body: null };
        const response = await open(`${address}?${query}&startIndex=0`, request, TypeError('network error'));
        if (!response.ok) throw Error(await response.text());
        ({ body } = response);
      }
    }

    const source = frames();
    const stream = new ReadableStream({
      async pull(controller) {
        const { done, value } = await source.next();
        done ? controller.close() : controller.enqueue(value);
      },
      cancel: () => left.abort(),
    });
    return new Response(stream, first);
  };
}

/** What the work comes to within a time; without work, resolves after the time, or when the page is back. */
function soon(milliseconds: number, signal: AbortSignal): Promise<undefined>;
function soon<T>(milliseconds: number, signal: AbortSignal, work: Promise<T>): Promise<T>;
function soon<T>(milliseconds: number, signal: AbortSignal, work?: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      asleep();
      work ? reject() : resolve(undefined);
    };
    const timer = setTimeout(end, milliseconds);
    const asleep = work ? () => {} : onWake(end);
    signal.onabort = () => {
      clearTimeout(timer);
      asleep();
      reject(signal.reason);
    };
    work?.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
