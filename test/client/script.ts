import type { Event, Run } from 'rivulet';
import type { Break } from 'rivulet/client';

interface Requested {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

/** The outcome of a request: a response, an error, or a function that makes one. */
export type Answer = Response | Error | ((request: Requested) => Response | Promise<Response>);

/** A `fetch` that responds from a script and records the requests. After the script's end, it does not respond. */
export function script(...answers: Answer[]) {
  const requests: Requested[] = [];
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = {
      method: init?.method ?? 'GET',
      path: new URL(String(url)).pathname,
      headers: new Headers(init?.headers),
      body: init?.body?.toString(),
      signal: init?.signal ?? new AbortController().signal,
    };
    requests.push(request);
    const answer = answers.shift() ?? hangs;
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer(request) : answer;
  };
  return { fetch, requests };
}

/** Never responds; rejects when it is aborted, as fetch does. */
const hangs = ({ signal }: Requested): Promise<Response> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

/** A stream with this text that stays open until it is aborted. */
export const openStream =
  (text: string): Answer =>
  ({ signal }) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text));
        signal.addEventListener('abort', () => controller.error(signal.reason), { once: true });
      },
    });
    return stream(body);
  };

/** An event stream with this body that ends cleanly. */
export const stream = (body: string | ReadableStream<Uint8Array>): Response =>
  new Response(body, { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } });

export const refused = (status: number, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ code: `code_${status}`, message: `Words for ${status}.`, data: { status } }), {
    status,
    headers,
  });

export const run_id = '11111111-2222-4333-8444-555555555555';
const run = (status: Run['status']): Run => ({
  run_id,
  agent_name: 'a',
  status,
  output: [],
  created_at: '2026-01-01T00:00:00.000Z',
});

/** The frame of an event with this id. */
export const frame = (id: number, event: Event): string => `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
export const created = frame(1, { type: 'run.created', run: run('created') });
export const progress = frame(2, { type: 'run.in-progress', run: run('in-progress') });
export const token = (id: number): string =>
  frame(id, { type: 'message.part', part: { content_type: 'text/plain', content: `t${id}` } });
export const awaiting = (id: number): string => frame(id, { type: 'run.awaiting', run: run('awaiting') });
export const resumed = (id: number): string => frame(id, { type: 'run.in-progress', run: run('in-progress') });
export const completed = (id: number): string => frame(id, { type: 'run.completed', run: run('completed') });

/** Options to reconnect within a millisecond, and the breaks that the client reports. */
export function fastReconnect(more: { retries?: number; idleTimeout?: number } = {}) {
  const breaks: Break[] = [];
  const firstRetries = Number.POSITIVE_INFINITY;
  return {
    breaks,
    reconnect: { firstRetries, minDelay: 1, maxDelay: 1, onBreak: (info: Break) => void breaks.push(info), ...more },
  };
}
