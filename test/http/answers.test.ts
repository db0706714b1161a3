import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createServer, rivulet, type ServerOptions } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { ask } from '../support/serve.ts';

const root = resolve(import.meta.dirname, '../..');
const noId = '00000000-0000-4000-8000-000000000000';

async function server(options: Partial<ServerOptions> = {}) {
  const app = await createServer({ agents: [echo], ...options });
  onTestFinished(() => app.close());
  return app;
}

beforeAll(async () => {
  if (existsSync(resolve(root, 'dist/playground/index.html'))) return;
  const { build } = await import('vite');
  await build({ root, logLevel: 'error' });
});

let asked: FastifyInstance | undefined;
/** One with the defaults, for all tests that only ask. */
async function defaults(): Promise<FastifyInstance> {
  asked ??= await createServer({ agents: [echo] });
  return asked;
}
afterAll(() => asked?.close());

describe('a path without a method', () => {
  it.each([
    ['DELETE', '/agents', 'GET, HEAD'],
    ['OPTIONS', '/runs', 'POST, GET, HEAD'],
    ['PUT', '/runs/', 'POST, GET, HEAD'],
    ['HEAD', `/runs/${noId}/events`, 'GET'],
    ['POST', `/runs/${noId}/events?after=secret`, 'GET'],
    ['GET', `/runs/${noId}/cancel`, 'POST'],
    ['HEAD', `/runs/${noId}/cancel`, 'POST'],
    ['PROPFIND', `/sessions/${noId}`, 'GET, HEAD, DELETE'],
    ['TRACE', '/ping', 'GET, HEAD'],
    ['PATCH', '/health', 'GET, HEAD'],
    ['POST', '/', 'GET, HEAD'],
    ['DELETE', '/docs/', 'GET, HEAD'],
    ['PUT', '/openapi.json', 'GET, HEAD'],
  ])('answers 405, and lists the allowed methods: %s %s', async (method, url, allow) => {
    const app = await defaults();
    // The types do not know all of these methods.
    const response = await app.inject(JSON.parse(JSON.stringify({ method, url })));
    expect([response.statusCode, response.headers.allow]).toEqual([405, allow]);
    if (method !== 'HEAD')
      expect(response.json().message).toBe(`${url.split('?')[0]} does not take ${method}, only ${allow}.`);
  });

  it('is one of a route: all others answer 404, without their query', async () => {
    const app = await defaults();
    for (const url of ['/nothing', '/runs/a/b/c', '/runsx', '/agentsX/echo', '/docs/nothing/at/all']) {
      const response = await app.inject({ method: 'PUT', url: `${url}?token=secret` });
      expect([url, response.statusCode, response.body.includes('secret')]).toEqual([url, 404, false]);
    }
  });

  it('is also found under a prefix', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo], docs: false });
    const response = await app.inject({ method: 'PUT', url: '/acp/runs' });
    expect([response.statusCode, response.headers.allow]).toEqual([405, 'POST, GET, HEAD']);
  });
});

describe('an error of an app that embeds the plugin', () => {
  it.each([
    [401, 'invalid_input', 'sign in first'],
    [403, 'invalid_input', 'not you'],
    [402, 'invalid_input', 'pay first'],
    [503, 'server_error', undefined],
    [502, 'server_error', undefined],
    [200, 'server_error', undefined],
    [undefined, 'server_error', undefined],
  ])('keeps its status %s and its headers, and its message where it is a client error', async (status, code, says) => {
    const app = Fastify();
    onTestFinished(() => app.close());
    app.addHook('onRequest', async (_, reply) => {
      reply.header('WWW-Authenticate', 'Bearer').header('Retry-After', '7');
      throw Object.assign(new Error(says ?? 'the password is hunter2'), { statusCode: status });
    });
    await app.register(rivulet, { prefix: '/acp', agents: [echo], docs: false, playground: false });
    const response = await app.inject('/acp/agents');
    const isError = status !== undefined && status >= 400;
    expect([response.statusCode, response.json().code]).toEqual([isError ? status : 500, code]);
    expect(response.headers).toMatchObject({ 'www-authenticate': 'Bearer', 'retry-after': '7' });
    if (says === undefined) expect(response.body).not.toContain('hunter2');
    else expect(response.json().message).toBe(says);
  });
});

describe('content negotiation', () => {
  it('ignores case, and takes a weight of zero for a refusal', async () => {
    const app = await server({ docs: false, playground: false });
    const { run_id } = (await app.inject({ method: 'POST', url: '/runs', payload: ask('echo') })).json();
    const typeFor = async (accept: string): Promise<string> => {
      const { headers } = await app.inject({ url: `/runs/${run_id}/events`, headers: { accept } });
      return String(headers['content-type']).split(';')[0] ?? '';
    };
    for (const accept of ['Text/Event-Stream', 'text/event-stream; q=0.1', 'application/json, text/event-stream;q=1']) {
      expect([accept, await typeFor(accept)]).toEqual([accept, 'text/event-stream']);
    }
    for (const accept of ['text/event-stream;q=0', 'text/event-stream; q=0.000', '*/*', 'x-text/event-streams']) {
      expect([accept, await typeFor(accept)]).toEqual([accept, 'application/json']);
    }
  });

  it('selects the compression of the playground', async () => {
    const app = await server({ docs: false });
    const encodingFor = async (accept: string): Promise<unknown> =>
      (await app.inject({ url: '/', headers: { 'accept-encoding': accept } })).headers['content-encoding'];
    expect(await encodingFor('br, GZIP;q=0.5')).toBe('gzip');
    for (const none of ['gzip;q=0', 'x-gzip-y', 'gzip; q=0.0, br']) expect(await encodingFor(none)).toBeUndefined();
  });

  it('answers 304 where the client has the page, by any kind of ETag', async () => {
    const app = await server({ docs: false });
    const tag = String((await app.inject('/')).headers.etag);
    const statusFor = async (header: string): Promise<number> =>
      (await app.inject({ url: '/', headers: { 'if-none-match': header } })).statusCode;
    for (const header of [tag, `W/${tag}`, `"other", ${tag}`, `"a,b",W/"c" , W/${tag}`, '*']) {
      expect([header, await statusFor(header)]).toEqual([header, 304]);
    }
    for (const header of ['"other"', tag.slice(1, -1), `"x${tag.slice(1)}`, '']) {
      expect([header, await statusFor(header)]).toEqual([header, 200]);
    }
  });
});

describe('the security headers', () => {
  it.each(['/ping', '/agents', '/nothing', '/openapi.json', '/docs', '/docs/', '/'])(
    'keep browsers from framing, sniffing or loading a response from other origins: %s',
    async (url) => {
      const app = await defaults();
      const { headers } = await app.inject(url);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
      expect(policy).not.toMatch(/https?:|\*|script-src[^;]*unsafe/);
    },
  );

  it('are the same for streams and for stored resources', async () => {
    const app = await server({ docs: false, playground: false });
    const stream = await app.inject({ method: 'POST', url: '/runs', payload: ask('echo', 'a', { mode: 'stream' }) });
    const { session_id } = (await app.inject(`/runs/${stream.headers['run-id']}`)).json();
    const { history } = (await app.inject(`/sessions/${session_id}`)).json();
    const stored = await app.inject(new URL(history[0]).pathname);
    for (const { statusCode, headers } of [stream, stored]) {
      expect([statusCode, headers['x-content-type-options']]).toEqual([200, 'nosniff']);
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    }
  });
});

describe('links', () => {
  it('begin with the path of the public URL, which a proxy removes', async () => {
    const app = await server({ publicUrl: 'https://agents.example.com/base/' });
    const made = await app.inject({ method: 'POST', url: '/runs', payload: ask('echo') });
    expect(made.headers.location).toBe(`/base/runs/${made.headers['run-id']}`);
    expect((await app.inject('/docs/')).headers.location).toBe('/base/docs');
  });

  it('begin with the prefix of a plugin', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo] });
    const made = await app.inject({ method: 'POST', url: '/acp/runs', payload: ask('echo') });
    expect(made.headers.location).toBe(`/acp/runs/${made.headers['run-id']}`);
    expect((await app.inject('/acp/docs')).statusCode).toBe(200);
    expect((await app.inject('/acp')).headers.location).toBe('/acp/');
  });

  it('need a valid public URL', async () => {
    await expect(server({ publicUrl: 'agents.example.com' })).rejects.toThrow(/^publicUrl: expected an http/);
    await expect(server({ publicUrl: 'https://agents.example.com?q#f' })).rejects.toThrow(
      /^publicUrl: expected an http.* got one with a query and a fragment$/,
    );
  });
});

describe('the log of requests', () => {
  it('has their paths without their queries', async () => {
    const lines: string[] = [];
    const logger = { level: 'info', stream: { write: (line: string) => lines.push(line) } };
    const app = await server({ docs: false, playground: false, logger });
    for (const url of ['/ping', '/nothing', '/agents', `/runs/${noId}`]) await app.inject(`${url}?token=secret`);
    const logged = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    expect(logged.map(({ path }) => path)).toEqual(['/nothing', '/agents', `/runs/${noId}`]);
    expect(lines.join('')).not.toContain('secret');
  });
});
