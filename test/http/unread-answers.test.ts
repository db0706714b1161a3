import { on, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import Fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { rivulet } from '../../src/index.ts';
import { agent } from '../support/agents.ts';
import { ask, type Served, serve } from '../support/serve.ts';

const large = (size: number) => agent('large', () => 'x'.repeat(size));

interface Ids {
  readonly run: string;
  readonly session: string;
}

interface Read {
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer is written event by event, and so has no limit. */
  readonly pieces?: true;
}

const sse = { accept: 'text/event-stream' };
const a2a = { 'a2a-version': '1.0' };
const message = { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
const rpc = (method: string, params: object): object => ({ jsonrpc: '2.0', id: 1, method, params });
const agUi = {
  threadId: 't',
  runId: 'r',
  messages: [{ id: '1', role: 'user', content: 'hi' }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
};
const chat = { id: 'c', messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] };

/**
 * How each route answers with a large run. A route without an entry fails the test: say how it reads a run, or that its
 * answers are `small`.
 */
const entries: Readonly<Record<string, 'small' | ((ids: Ids) => Read)>> = {
  'GET /health': 'small',
  'GET /ready': 'small',
  'GET /ping': 'small',
  'GET /agents': 'small',
  'GET /agents/:name': 'small',
  'POST /runs': () => ({ path: '/runs', body: ask('large') }),
  'POST /runs/:run_id': 'small',
  'POST /runs/:run_id/cancel': 'small',
  'POST /runs/:run_id/again': 'small',
  'POST /runs/:run_id/retry': 'small',
  'GET /runs': 'small',
  'GET /runs/:run_id': ({ run }) => ({ path: `/runs/${run}` }),
  'DELETE /runs/:run_id': 'small',
  'GET /runs/:run_id/diagnostics': 'small',
  'GET /runs/:run_id/events': ({ run }) => ({ path: `/runs/${run}/events`, pieces: true }),
  'POST /runs/:run_id/stream-ticket': 'small',
  'GET /sessions/:session_id': 'small',
  'GET /session/:session_id': 'small',
  'DELETE /sessions/:session_id': 'small',
  'GET /resources/:resource_id': 'small',
  'DELETE /principals/me/data': 'small',
  'POST /ai/:agent': () => ({ path: '/ai/large', body: chat, pieces: true }),
  'GET /ai/:agent/:id/stream': 'small',
  'GET /ai/:agent/:id': ({ session }) => ({ path: `/ai/large/${session}` }),
  'POST /ag-ui/:agent': () => ({ path: '/ag-ui/large', body: agUi, headers: sse, pieces: true }),
  'GET /ag-ui/:agent': 'small',
  'GET /ag-ui/:agent/runs/:runId': ({ run }) => ({ path: `/ag-ui/large/runs/${run}`, headers: sse, pieces: true }),
  'POST /ag-ui/:agent/runs/:runId/cancel': 'small',
  'POST /v1/responses': () => ({ path: '/v1/responses', body: { model: 'large', input: 'hi' } }),
  'GET /v1/responses/:id': ({ run }) => ({ path: `/v1/responses/resp_${run}` }),
  'GET /v1/responses/:id/input_items': 'small',
  'POST /v1/responses/:id/cancel': ({ run }) => ({ path: `/v1/responses/resp_${run}/cancel`, body: {} }),
  'DELETE /v1/responses/:id': 'small',
  'POST /v1/chat/completions': () => ({
    path: '/v1/chat/completions',
    body: { model: 'large', messages: [{ role: 'user', content: 'hi' }] },
  }),
  'GET /v1/models': 'small',
  'GET /v1/models/:name': 'small',
  'POST /a2a': ({ run }) => ({ path: '/a2a', headers: a2a, body: rpc('GetTask', { id: run }) }),
  'POST /a2a/:agent': () => ({ path: '/a2a/large', headers: a2a, body: rpc('SendMessage', { message }) }),
  'GET /a2a/:agent/tasks': () => ({ path: '/a2a/large/tasks?includeArtifacts=true', headers: a2a }),
  'GET /a2a/:agent/tasks/:task': ({ run }) => ({ path: `/a2a/large/tasks/${run}`, headers: a2a }),
  // It refuses to cancel or to subscribe to a run that is final.
  'POST /a2a/:agent/tasks/:task': 'small',
  'GET /a2a/:agent/extendedAgentCard': 'small',
  'POST /a2a/:agent/tasks/:task/pushNotificationConfigs': 'small',
  'GET /a2a/:agent/tasks/:task/pushNotificationConfigs': 'small',
  'GET /a2a/:agent/tasks/:task/pushNotificationConfigs/:config': 'small',
  'DELETE /a2a/:agent/tasks/:task/pushNotificationConfigs/:config': 'small',
  'POST /a2a/:agent/:message(^message(?::|%3[Aa])(?:send|stream)$)': () => ({
    path: '/a2a/large/message:send',
    headers: a2a,
    body: { message },
  }),
  'GET /a2a/:name/.well-known/agent-card.json': 'small',
  'GET /.well-known/agent-card.json': 'small',
  'POST /mcp': () => ({
    path: '/mcp',
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
    body: rpc('tools/call', { name: 'large', arguments: { input: 'hi', message: 'hi', text: 'hi', prompt: 'hi' } }),
  }),
  'GET /mcp': 'small',
  'GET /runs/:run_id/stream': ({ run }) => ({ path: `/runs/${run}/stream?offset=-1`, pieces: true }),
  'HEAD /runs/:run_id/stream': 'small',
};

/** The routes of a server, as Fastify registers them. The tenant of A2A's routes is another name of the same. */
async function routesOf(): Promise<string[]> {
  const app = Fastify({ exposeHeadRoutes: false });
  onTestFinished(() => app.close());
  const routes: string[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push(`${one} ${url.replace('/:tenant', '')}`);
  });
  await app.register(rivulet, { agents: [large(1)], playground: false, docs: false });
  await app.ready();
  return [...new Set(routes)].filter((route) => !/^OPTIONS| \/(docs|assets)/.test(route));
}

/** The requests of the routes that answer with runs. */
async function readsOf(served: Served): Promise<[route: string, read: Read][]> {
  const session = crypto.randomUUID();
  const begun = await (await served.post('/runs', ask('large', 'hi', { session_id: session, mode: 'async' }))).json();
  await (await served.get(`/runs/${begun.run_id}/events`, sse)).text();
  return (await routesOf()).flatMap((route): [string, Read][] => {
    const entry = entries[route];
    if (entry === undefined) throw new Error(`${route} needs an entry in this test: how it reads a run, or 'small'`);
    return entry === 'small' ? [] : [[route, entry({ run: begun.run_id, session })]];
  });
}

/** Sends a request over a socket that reads nothing. Returns the server's end of it. */
async function send({ app, url }: Served, route: string, { path, body, headers }: Read): Promise<Socket> {
  const { port, host } = new URL(url);
  const client = connect(Number(port), '127.0.0.1').pause();
  onTestFinished(() => void client.destroy());
  client.on('error', () => {});
  const json = body === undefined ? '' : JSON.stringify(body);
  const all = { host, ...(body && { 'content-type': 'application/json', 'content-length': json.length }), ...headers };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  client.write(`${route.split(' ')[0]} ${path} HTTP/1.1\r\n${head.join('')}\r\n${json}`);
  for await (const [server] of on(app.server, 'connection')) if (server.remotePort === client.localPort) return server;
  throw new Error('the server has closed');
}

it('drops the answers of each route to a reader that reads nothing', { timeout: 120_000 }, async () => {
  // More than the kernel takes for a client that does not read.
  const served = await serve([large(12_000_000)], { stalledAfter: 100 });
  const kept = new Set<string>();
  const drop = async ([route, read]: [string, Read]): Promise<void> => {
    kept.add(route);
    await once(await send(served, route, read), 'close');
    kept.delete(route);
  };
  const drops = Promise.all((await readsOf(served)).map(drop));
  await expect.poll(() => [...kept]).toEqual([]);
  await drops;
});

it('holds no more of runs than the limit for any request', { timeout: 120_000 }, async () => {
  const [limit, size] = [100_000, 1_200_000];
  const served = await serve([large(size)], { readLimit: limit });
  const broken: string[] = [];
  for (const [route, { path, body, headers, pieces }] of await readsOf(served)) {
    const answer =
      body === undefined ? await served.get(path, { ...headers }) : await served.post(path, body, { ...headers });
    const text = await answer.text();
    const isRefused = text.length < limit && (answer.status === 413 || text.includes('stored runs'));
    const isWhole = pieces === true && answer.status === 200 && text.length > size;
    if (!isRefused && !isWhole)
      broken.push(`${route}: ${answer.status}, ${text.length} characters ${text.slice(0, 200)}`);
  }
  expect(broken).toEqual([]);
});
