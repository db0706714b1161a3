import type { Agent } from 'rivulet';
import { createClient } from 'rivulet/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { agent, askOnce, echo } from '../support/agents.ts';
import { serveApi } from '../support/serve.ts';

async function setUp(...more: Agent[]) {
  const served = await serveApi([echo, askOnce, ...more]);
  return { served, client: createClient({ url: served.url }) };
}

describe('calls of the client', () => {
  it('list agents and describe one', async () => {
    const { client } = await setUp(...Array.from({ length: 10 }, (_, n) => agent(`extra-${n}`, () => 'x')));
    expect(await client.agents()).toHaveLength(12);
    expect((await client.agents({ limit: 2, offset: 1 })).map(({ name }) => name)).toEqual(['echo', 'extra-0']);
    expect(await client.agent('echo')).toMatchObject({ name: 'echo', description: "The test's echo." });
  });

  it('share no signal, with which Node 20 would keep an entry for each call', async () => {
    const { client } = await setUp();
    const any = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => any.mockRestore());
    for (let n = 0; n < 3; n += 1) await client.agents();
    const sources = any.mock.calls.flatMap(([signals]) => [...signals]);
    expect(sources).toHaveLength(new Set(sources).size);
  });

  it('fail with the connection’s error', async () => {
    const { served, client } = await setUp();
    await served.app.close();
    await expect(client.agents()).rejects.toMatchObject({
      name: 'ClientError',
      code: 'network',
      status: 0,
      retryable: true,
      message: expect.stringContaining('ECONNREFUSED'),
    });
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(client.agents({}, { signal })).rejects.toThrow('enough');
  });

  it('fail if another kind of server responds', async () => {
    const page = new Response('<h1>Log in</h1>', { headers: { 'Content-Type': 'text/html' } });
    const client = createClient({ url: 'http://rivulet.test', fetch: async () => page });
    await expect(client.agents()).rejects.toMatchObject({ code: 'not_understood', status: 200 });
    const broken = new Response('<h1>Bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' });
    const behind = createClient({ url: 'http://rivulet.test', fetch: async () => broken });
    await expect(behind.agents()).rejects.toMatchObject({ status: 502, message: '502 Bad Gateway', retryable: true });
  });

  it('keep the path prefix of the server; an invalid URL is refused', async () => {
    const paths: string[] = [];
    const keep: typeof fetch = async (url) => {
      paths.push(String(url));
      return Response.json({ agents: [] });
    };
    for (const url of ['http://rivulet.test', 'http://rivulet.test/acp', 'http://rivulet.test/acp/']) {
      await createClient({ url, fetch: keep }).agents({});
    }
    expect(paths).toEqual(['', 'acp/', 'acp/'].map((path) => `http://rivulet.test/${path}agents`));
    expect(() => createClient({ url: '/acp' })).toThrow(TypeError);
    expect(() => createClient({ url: 'localhost:8000' })).toThrow(
      new TypeError('Expected http://HOST, got localhost:8000'),
    );
  });

  it('send headers that are computed for each request', async () => {
    const { served } = await setUp();
    const sent: (string | null)[] = [];
    served.app.server.on('request', ({ headers }) => sent.push(headers.authorization ?? null));
    let calls = 0;
    const client = createClient({
      url: served.url,
      headers: () => {
        calls += 1;
        return { Authorization: `Bearer ${calls}` };
      },
    });
    const { run_id } = await client.sync('echo', 'a');
    await client.get(run_id);
    await client.remove(run_id);
    expect(sent).toEqual(['Bearer 1', 'Bearer 2', 'Bearer 3']);
    await createClient({ url: served.url, headers: { Authorization: 'Basic x' } }).agents();
    expect(sent.at(-1)).toBe('Basic x');
  });

  it('send a token, or one that is computed for each request, and keep it out of errors', async () => {
    const { served } = await setUp();
    const sent: (string | undefined)[] = [];
    served.app.server.on('request', ({ headers }) => sent.push(headers.authorization));
    const tokens = ['first', 'second', '', 'from a file\n', 'ab\u{1F600}c'];
    await createClient({ url: served.url, token: 'fixed', headers: { Authorization: 'Basic x' } }).agents();
    const client = createClient({ url: served.url, token: async () => tokens.shift() ?? '' });
    for (let count = 0; count < 5; count += 1) await client.agents();
    expect(sent).toEqual([
      'Bearer fixed',
      'Bearer first',
      'Bearer second',
      undefined,
      'Bearer fromafile',
      'Bearer abc',
    ]);
    const failing = createClient({
      url: served.url,
      token: () => {
        throw new Error('not logged in');
      },
    });
    await expect(failing.agents()).rejects.toMatchObject({ code: 'headers', message: /not logged in/ });
  });
});
