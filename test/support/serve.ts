import type { FastifyInstance } from 'fastify';
import { afterAll, onTestFinished } from 'vitest';
import { type Agent, createServer, type Event, type Run, type ServerOptions } from '../../src/index.ts';
import { turn } from './turn.ts';

export interface Served {
  readonly app: FastifyInstance;
  readonly url: string;
  /** POSTs JSON. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
}

/** Options of a server without pages and other protocols, for tests of the engine. */
export const apiOnly = { docs: false, playground: false, protocols: [] } satisfies Partial<ServerOptions>;

/** A listening server, which is closed at the end of the test. */
export async function serve(agents: Agent[], options: Partial<ServerOptions> = {}): Promise<Served> {
  const served = await listen(agents, options);
  onTestFinished(() => served.app.close());
  return served;
}

/**
 * The same with the REST API alone, for tests that ask for nothing else: pages and other protocols are two thirds of what
 * a start costs.
 */
export const serveApi = (agents: Agent[], options: Partial<ServerOptions> = {}): Promise<Served> =>
  serve(agents, { ...apiOnly, ...options });

/** A listening server for all tests of a file. */
export function serveAll(agents: Agent[], options: Partial<ServerOptions> = {}): Promise<Served> {
  const served = listen(agents, options);
  afterAll(async () => (await served).app.close());
  return served;
}

/** A listening server for all tests of a file or a block; the first test that calls it starts it. */
export function shared(agents: Agent[], options: Partial<ServerOptions> = {}): () => Promise<Served> {
  let served: Promise<Served> | undefined;
  afterAll(async () => (await served)?.app.close());
  return () => {
    served ??= listen(agents, options);
    return served;
  };
}

/** A listening server that the caller closes. */
export async function listen(agents: Agent[], options: Partial<ServerOptions> = {}): Promise<Served> {
  // Agents of tests may never end; the server does not wait for them.
  const app = await createServer({ agents, ...options, limits: { shutdownGrace: 0, ...options.limits } });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    app,
    url,
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    get: (path, headers = {}) => fetch(`${url}${path}`, { headers }),
  };
}

/** The body of a request for a run with one text as input. */
export const ask = (agent_name: string, text = 'hi', more: object = {}): object => ({
  agent_name,
  input: [{ parts: [{ content: text }] }],
  ...more,
});

export interface Framed {
  readonly id: number | undefined;
  readonly event: Event;
}

/** The frames of an SSE body, read to its end. */
export async function frames(response: Response): Promise<Framed[]> {
  return parseFrames(await response.text());
}

export function parseFrames(text: string): Framed[] {
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const id = /^id: (\d+)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? 'null';
      return { id: id === undefined ? undefined : Number(id), event: JSON.parse(data) };
    });
}

/** Reads frames until one satisfies the condition, and then cancels the stream. */
export async function framesUntil(response: Response, enough: (frame: Framed) => boolean): Promise<Framed[]> {
  if (response.body === null) throw new Error('no body');
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const complete = parseFrames(text.slice(0, text.lastIndexOf('\n\n') + 2));
    if (complete.some(enough)) return complete;
  }
  throw new Error(`the stream ended before that event; it had ${text}`);
}

export const types = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

export { textOf } from './run-output.ts';

/** The run's events, from the list endpoint. */
export async function eventsOf(served: Served, run_id: string): Promise<Event[]> {
  const { events } = await (await served.get(`/runs/${run_id}/events`)).json();
  return events;
}

/** Follows a run to its end and returns it. */
export async function finished(served: Served, run_id: string): Promise<Run> {
  const stream = await served.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
  await stream.text();
  return (await served.get(`/runs/${run_id}`)).json();
}

/** Waits until a run is parked, and returns it. */
export async function parked(served: Served, run_id: string): Promise<Run> {
  for (;;) {
    const run: Run = await (await served.get(`/runs/${run_id}`)).json();
    if (run.parked !== undefined) return run;
    await turn();
  }
}
