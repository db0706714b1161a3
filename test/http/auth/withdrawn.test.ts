import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';
import { NEVER } from 'rxjs';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import type { AuthOptions, AuthRequest } from '../../../src/http/auth/credentials.ts';
import { recordOf, userScopes } from '../../../src/http/auth/key-records.ts';
import { httpLimits } from '../../../src/http/limits/limits.ts';
import { StreamMonitor } from '../../../src/http/sse/stream-monitor.ts';
import { unobserved } from '../../../src/http/traffic.ts';
import { headersOf, metaOf, request } from '../../protocols/mcp/modern.ts';
import { agent, never } from '../../support/agents.ts';
import { newFolder } from '../../support/folder.ts';
import { ask, type Served, serve } from '../../support/serve.ts';
import { audience, issuer, TokenIssuer } from '../../support/token-issuer.ts';

const slow = agent('slow', () => NEVER, { metadata: { tool: { long_running: true } } });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  return () => void vi.useRealTimers();
});

/** The path of a file that is removed after the test. */
function tempFile(name: string): string {
  const folder = newFolder(onTestFinished);
  return join(folder, name);
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** An open stream, after its first bytes. */
class Stream {
  text = '';
  state: 'open' | 'clean' | 'broken' = 'open';
  readonly ended: Promise<'clean' | 'broken'>;

  private constructor(response: Response, onFirst: () => void) {
    const read = async (): Promise<'clean' | 'broken'> => {
      try {
        for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          this.text += part;
          onFirst();
        }
        return 'clean';
      } catch {
        return 'broken';
      }
    };
    this.ended = read().then((how) => {
      this.state = how;
      return how;
    });
  }

  static async open(answer: Promise<Response>): Promise<Stream> {
    const response = await answer;
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/event-stream'),
    ]);
    return new Promise((resolve) => {
      const stream: Stream = new Stream(response, () => resolve(stream));
    });
  }
}

const feed = (served: Served, headers: Record<string, string>): Promise<Stream> =>
  Stream.open(served.get('/runs', { accept: 'text/event-stream', ...headers }));

const serving = (auth: AuthOptions): Promise<Served> => serve([never, slow], { auth, heartbeat: 600_000 });

/** A run of `never`. */
async function begin(served: Served, headers: Record<string, string>): Promise<string> {
  const { run_id } = await (await served.post('/runs', ask('never', 'hi', { mode: 'async' }), headers)).json();
  return run_id;
}

/** Opens a stream of each protocol. */
async function openAll(served: Served, as: Record<string, string>): Promise<Record<string, Stream>> {
  const accept = { accept: 'text/event-stream', ...as };
  const run_id = await begin(served, as);
  const a2a = { ...as, 'a2a-version': '1.0' };
  const text = { role: 'user', content: 'hi' };
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
  const input = { threadId: 't', runId: 'r', messages: [{ id: 'm', ...text }], tools: [], context: [], state: {} };
  const mcp = (method: string, name: string, params: object): Promise<Response> => {
    const meta = metaOf({ extensions: { 'io.modelcontextprotocol/tasks': {} } }, { progressToken: 1 });
    const headers = { ...as, ...headersOf(method, name), accept: 'application/json, text/event-stream' };
    return served.post('/mcp', request(method, { ...params, _meta: meta }), headers);
  };
  const task = await (await mcp('tools/call', 'slow', { name: 'slow', arguments: { input: 'hi' } })).json();
  const answers: Record<string, Promise<Response>> = {
    'the feed of runs': served.get('/runs', accept),
    'the events of a run': served.get(`/runs/${run_id}/events`, accept),
    'a run': served.post('/runs', ask('never', 'hi', { mode: 'stream' }), as),
    'Durable Streams': served.get(`/runs/${run_id}/stream?offset=-1&live=sse`, as),
    'A2A, a message': served.post('/a2a/never/message:stream', { message }, a2a),
    'A2A, a task': served.post(`/a2a/never/tasks/${run_id}:subscribe`, undefined, a2a),
    'AG-UI': served.post('/ag-ui/never', input, accept),
    'AI SDK': served.post(
      '/ai/never',
      { id: 'c', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] },
      as,
    ),
    'Chat Completions': served.post('/v1/chat/completions', { model: 'never', messages: [text], stream: true }, as),
    Responses: served.post('/v1/responses', { model: 'never', input: 'hi', stream: true }, as),
    'MCP, a call': mcp('tools/call', 'never', { name: 'never', arguments: { input: 'hi' } }),
    'MCP, tasks': mcp('subscriptions/listen', '', { notifications: { taskIds: [task.result.taskId] } }),
  };
  const streams: Record<string, Stream> = {};
  for (const [name, answer] of Object.entries(answers)) streams[name] = await Stream.open(answer);
  return streams;
}

describe('the open streams of a key', () => {
  it('end in every protocol when the key is removed from its file, and no others', async () => {
    const keyFile = tempFile('keys.json');
    const [gone, kept] = [makeApiKey().key, makeApiKey().key];
    const records = [recordOf(kept, { principal: 'kept' }), recordOf(gone, { principal: 'gone', scopes: ['admin'] })];
    writeFileSync(keyFile, JSON.stringify(records), { mode: 0o600 });
    const served = await serving({ keyFile });
    const other = await feed(served, bearer(kept));
    const streams = await openAll(served, bearer(gone));
    const run_id = await begin(served, bearer(gone));
    const issued = await (await served.post(`/runs/${run_id}/stream-ticket`, undefined, bearer(gone))).json();
    const ofTicket = await Stream.open(served.get(issued.url, { accept: 'text/event-stream' }));
    writeFileSync(keyFile, JSON.stringify(records.slice(0, 1)));
    vi.advanceTimersByTime(5_000);
    const ends: Record<string, string> = {};
    for (const [name, stream] of Object.entries(streams)) {
      ends[name] = await stream.ended;
      if (stream.text.includes('The credentials of this stream were withdrawn')) ends[name] += ' with an error';
    }
    expect(ends).toEqual({
      'the feed of runs': 'clean',
      'the events of a run': 'clean',
      'a run': 'clean',
      'Durable Streams': 'clean',
      'A2A, a message': 'broken',
      'A2A, a task': 'broken',
      'AG-UI': 'clean with an error',
      'AI SDK': 'broken',
      'Chat Completions': 'clean with an error',
      Responses: 'clean with an error',
      'MCP, a call': 'broken',
      'MCP, tasks': 'broken',
    });
    expect((await served.get('/runs', { accept: 'text/event-stream', ...bearer(gone) })).status).toBe(401);
    expect([other.state, ofTicket.state]).toEqual(['open', 'open']);
  });

  it('end when the key expires or its record changes, and go on when other keys change', async () => {
    const keyFile = tempFile('keys.json');
    const [short, changed, kept] = [makeApiKey().key, makeApiKey().key, makeApiKey().key];
    const expires_at = new Date(Date.now() + 20_000).toISOString();
    const first = { ...recordOf(short, { principal: 'a' }), expires_at };
    const [second, third] = [recordOf(changed, { principal: 'b' }), recordOf(kept, { principal: 'c' })];
    writeFileSync(keyFile, JSON.stringify([first, second, third]), { mode: 0o600 });
    const served = await serving({ keyFile });
    const [expiring, changing, other] = await Promise.all(
      [short, changed, kept].map((key) => feed(served, bearer(key))),
    );
    writeFileSync(keyFile, JSON.stringify([first, { ...second, scopes: ['agents:read'] }, third]));
    vi.advanceTimersByTime(5_000);
    expect(await changing?.ended).toBe('clean');
    expect([expiring?.state, other?.state]).toEqual(['open', 'open']);
    vi.advanceTimersByTime(16_000);
    expect(await expiring?.ended).toBe('clean');
    expect(other?.state).toBe('open');
  });
});

it('a stream whose client does not read is ended once', async () => {
  const monitor = new StreamMonitor({ ...httpLimits({}), traffic: unobserved });
  const reasons: (string | undefined)[] = [];
  const app = Fastify({ forceCloseConnections: true });
  onTestFinished(() => app.close());
  // The stream goes on after its end was asked for, as one that waits for its client.
  const opened = new Promise<void>((resolve) => {
    app.get('/', (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200);
      monitor.add(reply, 'runs', (reason) => reasons.push(reason?.kind));
      resolve();
    });
  });
  const stop = new AbortController();
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const answer = fetch(url, { signal: stop.signal });
  await opened;
  for (let reviews = 0; reviews < 3; reviews += 1) monitor.review(async () => false);
  await expect.poll(() => reasons.length).toBeGreaterThan(0);
  expect(reasons).toEqual(['unauthenticated']);
  stop.abort();
  await expect(answer).rejects.toThrow();
});

describe('the open streams of a token', () => {
  it('end at its `exp`', async () => {
    const jwks = tempFile('jwks.json');
    const tokens = new TokenIssuer();
    await tokens.addKey('first');
    writeFileSync(jwks, JSON.stringify(await tokens.jwks()), { mode: 0o600 });
    const served = await serving({ jwt: { issuer, audience, jwks } });
    const exp = Math.floor(Date.now() / 1_000) + 100;
    const [short, long] = [await tokens.sign({ exp }), await tokens.sign()];
    const [ending, other] = [await feed(served, bearer(short)), await feed(served, bearer(long))];
    // The second look comes after a minute.
    vi.advanceTimersByTime(62_000);
    await vi.waitFor(async () => expect((await served.get('/runs', bearer(short))).status).toBe(200));
    expect([ending.state, other.state]).toEqual(['open', 'open']);
    vi.advanceTimersByTime(40_000);
    expect(await ending.ended).toBe('clean');
    expect(other.state).toBe('open');
  });

  it('end within a minute after the key that signed it is withdrawn', async () => {
    const jwks = tempFile('jwks.json');
    const tokens = new TokenIssuer();
    await tokens.addKey('first');
    writeFileSync(jwks, JSON.stringify(await tokens.jwks()), { mode: 0o600 });
    const served = await serving({ jwt: { issuer, audience, jwks } });
    const stream = await feed(served, bearer(await tokens.sign()));
    await tokens.addKey('second');
    tokens.dropKey();
    const other = await (async () => {
      writeFileSync(jwks, JSON.stringify(await tokens.jwks()));
      vi.advanceTimersByTime(5_000);
      return feed(served, bearer(await tokens.sign()));
    })();
    vi.advanceTimersByTime(56_000);
    expect(await stream.ended).toBe('clean');
    expect(other.state).toBe('open');
  });
});

describe('the open streams of the app’s own scheme', () => {
  it('end within a minute after it refuses their requests, or gives them other rights', async () => {
    const users: Record<string, object | undefined> = {};
    const authenticate = async ({ headers }: AuthRequest) => {
      const user = users[String(headers.user)];
      if (user instanceof Error) throw user;
      return user && { id: String(headers.user), scopes: [...userScopes], ...user };
    };
    const served = await serving({ authenticate });
    const names = ['refused', 'throwing', 'less', 'same'];
    for (const name of names) users[name] = {};
    const streams = await Promise.all(names.map((user) => feed(served, { user })));
    Object.assign(users, { refused: undefined, throwing: new Error('no session'), less: { agents: [] } });
    vi.advanceTimersByTime(62_000);
    for (const stream of streams.slice(0, 3)) expect(await stream.ended).toBe('clean');
    expect(streams[3]?.state).toBe('open');
  });
});
