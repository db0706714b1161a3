import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { headersOf, metaOf, request } from '../protocols/mcp/modern.ts';
import { agent, echo } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { nodes } from '../support/nodes.ts';
import { ask, framesUntil, serveApi } from '../support/serve.ts';
import { type Answer, type Caller, create, tenantNode, unlimited } from '../support/tenants.ts';

const post = (caller: Caller, name: string, more: object = {}): Promise<Answer> =>
  caller('/runs', { method: 'POST', body: ask(name, 'hi', more) });

const reasonOf = ({ text }: Answer): string => JSON.parse(text).data.reason;

describe('the limits of each caller', () => {
  it('refuse requests beyond those of a minute, and say when to come back', async () => {
    const node = await tenantNode({ requestsPerMinute: 3 });
    const alice = node.as('alice');
    for (const left of [2, 1, 0]) {
      const { status, headers } = await alice('/runs');
      expect([status, headers['ratelimit-policy']]).toEqual([200, '"requests";q=3;w=60']);
      expect(headers.ratelimit).toMatch(new RegExp(`^"requests";r=${left};t=\\d+$`));
    }
    const refused = await alice('/agents');
    expect([refused.status, reasonOf(refused)]).toEqual([429, 'quota_exceeded']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await node.as('bob')('/runs')).status).toBe(200);
  });

  it('count a request that accepts a stream where there is none', async () => {
    const alice = (await tenantNode({ requestsPerMinute: 1 })).as('alice');
    const headers = { accept: 'text/event-stream' };
    expect((await alice('/agents', { headers })).status).toBe(200);
    expect((await alice('/agents', { headers })).status).toBe(429);
  });

  it('count the principals of a tenant together', async () => {
    const node = await tenantNode({ requestsPerMinute: 2 });
    expect((await node.as('carol')('/runs')).status).toBe(200);
    expect((await node.as('dave')('/runs')).status).toBe(200);
    expect((await node.as('carol')('/runs')).status).toBe(429);
  });

  it('do not count for ever a run whose client left before it was counted', async () => {
    const arrived: (() => void)[] = [];
    const scopes = ['runs:read', 'runs:write'] as const;
    const authenticate = async ({ headers }: { headers: Record<string, unknown> }) => {
      if (headers.waits !== undefined) await new Promise<void>((resolve) => arrived.push(resolve));
      return { id: 'alice', scopes };
    };
    const served = await serveApi([echo], { auth: { authenticate }, runsPerOwner: 1 });
    const { hostname, port } = new URL(served.url);
    const socket = connect(Number(port), hostname);
    socket.write('POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nWaits: 1\r\n');
    socket.write('Content-Length: 100\r\n\r\n{');
    await expect.poll(() => arrived.length).toBe(1);
    socket.destroy();
    const open = () => new Promise((resolve) => served.app.server.getConnections((_, count) => resolve(count)));
    await expect.poll(open).toBe(0);
    arrived[0]?.();
    await expect.poll(async () => (await served.post('/runs', ask('echo'))).status).toBe(200);
  });

  it('answer a client that does not pause late, so that the others are served', async () => {
    const node = await tenantNode({ requestsPerMinute: 1 });
    const connection = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => connection.destroy());
    const ended: string[] = [];
    const alice = (what: string): Promise<void> =>
      new Promise((resolve) => {
        get(`${node.url}/runs`, { agent: connection, headers: { as: 'alice' } }, (response) => {
          ended.push(`${what} ${response.statusCode}`);
          response.resume().on('end', resolve);
        });
      });
    await alice('first');
    await alice('second');
    const third = alice('third');
    await node.as('bob')('/runs');
    ended.push('of bob');
    await third;
    expect(ended).toEqual(['first 200', 'second 429', 'of bob', 'third 429']);
  });

  it('refuse new runs beyond those of a minute, and no other requests', async () => {
    const alice = (await tenantNode({ runsPerMinute: 1 })).as('alice');
    expect((await post(alice, 'echo')).headers['ratelimit-policy']).toBe('"requests";q=600;w=60, "runs";q=1;w=60');
    const refused = await post(alice, 'echo');
    expect([refused.status, JSON.parse(refused.text).message]).toEqual([
      429,
      expect.stringMatching(/^1 runs in 60 s are the limit of each caller; try again in \d+ s\.$/),
    ]);
    expect((await alice('/runs')).status).toBe(200);
  });

  it('count runs that a body asks for as the handler reads it', async () => {
    const node = await tenantNode({ runsPerMinute: 1 });
    const alice = node.as('alice');
    const call = (more: object = {}): Promise<Answer> => {
      const params = { name: 'echo', arguments: { input: 'hi' }, _meta: metaOf(), ...more };
      const headers = { ...headersOf('tools/call', 'echo'), accept: 'application/json, text/event-stream' };
      return alice('/mcp', { method: 'POST', headers, body: request('tools/call', params) });
    };
    const first = await call({ requestState: null });
    expect([first.status, first.headers['ratelimit-policy'], first.headers.ratelimit]).toEqual([
      200,
      '"requests";q=600;w=60, "runs";q=1;w=60',
      expect.stringMatching(/^"requests";r=599;t=\d+, "runs";r=0;t=\d+$/),
    ]);
    for (const more of [{ requestState: null }, {}, { inputResponses: null }])
      expect((await call(more)).status).toBe(429);
    expect(
      (await alice('/mcp', { method: 'POST', headers: headersOf('tools/list'), body: request('tools/list') })).status,
    ).not.toBe(429);
  });

  it('count requests whose bodies are refused', async () => {
    for (const path of ['/mcp', '/a2a/', '/a2a/echo', '/runs']) {
      const node = await tenantNode({ requestsPerMinute: 3, bodyLimit: 2_000 });
      const send = async (body: string): Promise<number> => {
        const headers = { as: 'alice', 'content-type': 'application/json', 'a2a-version': '1.0' };
        return (await fetch(`${node.url}${path}`, { method: 'POST', headers, body })).status;
      };
      const statuses: number[] = [];
      for (const body of ['{', `"${'x'.repeat(3_000)}"`, '[]', '{']) statuses.push(await send(body));
      expect([path, statuses.map((status) => status === 429)]).toEqual([path, [false, false, false, true]]);
    }
  });

  it('refuse new runs while too many are at work; those that await do not count', async () => {
    const node = await tenantNode({ runsPerOwner: 1 });
    const alice = node.as('alice');
    expect((await post(alice, 'ask')).status).toBe(200);
    const { run_id } = await create(alice, 'never', { mode: 'async' });
    expect(reasonOf(await post(alice, 'echo'))).toBe('too_many_own_runs');
    expect((await post(node.as('bob'), 'echo')).status).toBe(200);
    await alice(`/runs/${run_id}/cancel`, { method: 'POST' });
    await alice(`/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } });
    expect((await post(alice, 'echo')).status).toBe(200);
  });

  it('refuse those of many runs that begin at once, beyond the number that may be at work', async () => {
    const node = await tenantNode({ runsPerOwner: 2, runsPerMinute: 0 });
    const alice = node.as('alice');
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(alice, 'never', { mode: 'async' })));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(2);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 429]));
  });

  it('refuse replies that would let too many runs work', async () => {
    const node = await tenantNode({ runsPerOwner: 1 });
    const alice = node.as('alice');
    const { run_id } = await create(alice, 'ask');
    await create(alice, 'never', { mode: 'async' });
    const body = { await_resume: { message: { parts: [{ content: 'yes' }] } } };
    expect(reasonOf(await alice(`/runs/${run_id}`, { method: 'POST', body }))).toBe('too_many_own_runs');
  });

  it('break streams off beyond those that may be open, so that an EventSource comes back', async () => {
    const node = await tenantNode({ streamsPerOwner: 1 });
    const { run_id } = await create(node.as('alice'), 'never', { mode: 'async' });
    const stop = new AbortController();
    const stream = (as: string, signal?: AbortSignal) =>
      fetch(`${node.url}/runs`, { headers: { as, accept: 'text/event-stream' }, ...(signal && { signal }) });
    expect((await stream('alice', stop.signal)).status).toBe(200);
    await expect(stream('alice')).rejects.toThrow();
    const refused = await node.as('alice')('/runs', { method: 'POST', body: ask('echo', 'hi', { mode: 'stream' }) });
    expect([refused.status, reasonOf(refused)]).toEqual([429, 'too_many_own_streams']);
    expect((await node.as('alice')(`/runs/${run_id}`)).status).toBe(200);
    const others = await stream('bob', stop.signal);
    expect(others.status).toBe(200);
    stop.abort();
  });

  it('refuse new runs when the tokens of a day are used', async () => {
    const node = await tenantNode({ tokensPerDay: 3 });
    const alice = node.as('alice');
    // Each run reports one part, which counts as a token where the agent reports no usage.
    for (let runs = 0; runs < 3; runs += 1) expect((await post(alice, 'remembers')).status).toBe(200);
    const refused = await post(alice, 'remembers');
    expect([refused.status, JSON.parse(refused.text).message]).toEqual([
      429,
      expect.stringContaining('3 tokens in 86400 s'),
    ]);
    expect((await post(node.as('bob'), 'remembers')).status).toBe(200);
  });

  it('count the tokens of a run that awaits, once, whether it gets a reply or is cancelled', async () => {
    const { promise: left, resolve: onLeft } = deferred();
    const spends = defineAgent(
      { name: 'spends', description: 'Uses tokens before and after a question.' },
      async function* (_, context) {
        context.signal.addEventListener('abort', () => onLeft());
        context.usage({ tokens: 10 });
        yield await context.await('More?').then(({ message }) => message);
        context.usage({ tokens: 10 });
      },
      { durable: true },
    );
    const limits = { passivateAfter: 1, sweepInterval: 1 };
    const node = await tenantNode({ agents: [spends], limits, tokensPerDay: 40 });
    const alice = node.as('alice');
    const { run_id } = await create(alice, 'spends');
    // The reply finds it in the store, and it is replayed.
    await left;
    const await_resume = { message: { parts: [{ content: 'yes' }] } };
    const resumed = await alice(`/runs/${run_id}`, { method: 'POST', body: { await_resume } });
    expect(JSON.parse(resumed.text)).toMatchObject({ status: 'completed', usage: { tokens: 20 } });
    for (let runs = 0; runs < 2; runs += 1) {
      const awaiting = await create(alice, 'spends');
      expect(awaiting.status).toBe('awaiting');
      expect((await alice(`/runs/${awaiting.run_id}/cancel`, { method: 'POST' })).status).toBe(202);
    }
    expect((await post(alice, 'spends')).status).toBe(429);
  });

  it('count the tokens of a run that another node has cancelled', async () => {
    const spends = agent('spends', async function* (_, context) {
      context.usage({ tokens: 1_000 });
      yield 'spent';
      await new Promise(() => {});
    });
    const { node, queue } = nodes([spends, echo]);
    const authenticate = () => ({ id: 'alice', scopes: ['runs:read', 'runs:write'] });
    const options = { auth: { authenticate }, ...unlimited, tokensPerDay: 1_000 };
    const [a, b] = [await node('a', options), await node('b', { ...options, limits: { cancelGrace: 1 } })];
    queue.next = 'b';
    const { run_id } = await (await a.post('/runs', ask('spends', 'hi', { mode: 'async' }))).json();
    const events = await a.get(`/runs/${run_id}/events`, { accept: 'text/event-stream' });
    await framesUntil(events, ({ event }) => event.type === 'message.part');
    expect((await a.post(`/runs/${run_id}/cancel`)).status).toBe(202);
    await expect.poll(async () => (await b.post('/runs', ask('echo'))).status).toBe(429);
  });

  it('do not concern callers without authentication', async () => {
    const served = await serveApi([echo], { requestsPerMinute: 1, runsPerMinute: 1 });
    for (let times = 0; times < 3; times += 1) expect((await served.post('/runs', ask('echo'))).status).toBe(200);
  });
});
