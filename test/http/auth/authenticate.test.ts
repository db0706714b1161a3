import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify, { type InjectOptions } from 'fastify';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import { recordOf, userScopes } from '../../../src/http/auth/key-records.ts';
import { type AuthOptions, createServer, type Principal, rivulet, type ServerOptions } from '../../../src/index.ts';
import { agent, echo, never } from '../../support/agents.ts';
import { newFolder } from '../../support/folder.ts';
import { apiOnly, ask } from '../../support/serve.ts';
import { audience, issuer, serveKeys, TokenIssuer } from '../../support/token-issuer.ts';

const alice = makeApiKey().key;
const reader = makeApiKey().key;
const keys = [
  recordOf(alice, { principal: 'alice' }),
  recordOf(reader, { principal: 'reader', scopes: ['runs:read'] }),
];
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function server(auth: AuthOptions, options: Partial<ServerOptions> = {}) {
  const app = await createServer({ agents: [echo, never], ...apiOnly, auth, limits: { shutdownGrace: 0 }, ...options });
  onTestFinished(() => app.close());
  const call = async (url: string, headers: Record<string, string> = {}, more: InjectOptions = {}) => {
    const response = await app.inject({ url, headers, ...more });
    const challenge = response.headers['www-authenticate'];
    return { status: response.statusCode, challenge, headers: response.headers, body: response.payload };
  };
  return { app, call };
}

describe('a request without credentials', () => {
  it('is refused with a challenge that names the scope', async () => {
    const { call } = await server({ keys });
    const { status, challenge, body } = await call('/runs');
    expect(status).toBe(401);
    expect(challenge).toBe('Bearer realm="rivulet", scope="runs:read"');
    expect(JSON.parse(body)).toMatchObject({ code: 'invalid_input', data: { reason: 'unauthenticated' } });
  });

  it('reaches only what is open by name', async () => {
    const { call } = await server({ keys }, { docs: true, playground: true });
    for (const url of ['/health', '/ready', '/ping', '/', '/docs', '/docs/guide', '/openapi.json']) {
      expect([url, (await call(url)).status]).toEqual([url, 200]);
    }
    for (const url of ['/agents', '/agents/echo', '/runs', '/nowhere', '/docs/nowhere', '/metrics']) {
      expect([url, (await call(url)).status]).toEqual([url, 401]);
    }
    expect((await call('/runs', {}, { method: 'OPTIONS' })).status).toBe(405);
  });

  it('is refused before its body is read', async () => {
    const { call } = await server({ keys });
    const headers = { 'content-type': 'application/json' };
    expect((await call('/runs', headers, { method: 'POST', payload: '{ "no' })).status).toBe(401);
  });

  it('has the rights of the operator where authentication is off', async () => {
    const app = await createServer({ agents: [echo], docs: false, playground: false });
    onTestFinished(() => app.close());
    expect((await app.inject('/runs')).statusCode).toBe(200);
  });
});

describe('a request with an API key', () => {
  it('may have it as Authorization or as X-API-Key', async () => {
    const { call } = await server({ keys });
    const all: Record<string, string>[] = [
      bearer(alice),
      { authorization: `bearer  ${alice} ` },
      { 'x-api-key': alice },
      { authorization: 'Basic x', 'x-api-key': alice },
    ];
    for (const headers of all) {
      expect((await call('/runs', headers)).status).toBe(200);
    }
  });

  it('may not have it in the query', async () => {
    const { call } = await server({ keys });
    for (const name of ['key', 'api_key', 'token', 'access_token', 'ticket']) {
      expect((await call(`/runs?${name}=${alice}`)).status).toBe(401);
    }
  });

  it('is refused where the key is wrong, and the answer does not say why', async () => {
    const { call } = await server({ keys });
    const answers = await Promise.all(
      [makeApiKey().key, 'rvk_x', `${alice}x`, 'x', ''].map((key) => call('/runs', bearer(key))),
    );
    for (const { status } of answers) expect(status).toBe(401);
    expect(answers[0]?.challenge).toBe('Bearer realm="rivulet", error="invalid_token", scope="runs:read"');
    expect(new Set(answers.slice(0, 4).map(({ body }) => body)).size).toBe(1);
  });

  it('needs the scope of the route', async () => {
    const { call } = await server({ keys });
    const answer = await call('/runs', bearer(reader), { method: 'POST', payload: ask('echo') });
    expect(answer.status).toBe(403);
    expect(answer.challenge).toBe('Bearer realm="rivulet", error="insufficient_scope", scope="runs:write"');
    expect(JSON.parse(answer.body).data.reason).toBe('scope_missing');
    expect((await call('/runs', bearer(reader))).status).toBe(200);
  });

  it('tells the agent its principal', async () => {
    const seen: unknown[] = [];
    const spy = agent('spy', (_, { principal }) => {
      seen.push(principal);
      return 'done';
    });
    const { call } = await server({ keys }, { agents: [spy] });
    const answer = await call('/runs', bearer(alice), { method: 'POST', payload: ask('spy') });
    expect(answer.status).toBe(200);
    expect(seen).toEqual([{ id: 'alice', kind: 'key', scopes: [...userScopes] }]);
  });

  it('works with the new key after the file has changed, and no longer with the old one', async () => {
    const path = join(newFolder(onTestFinished), 'keys.yaml');
    const [first, second] = [makeApiKey().key, makeApiKey().key];
    writeFileSync(path, JSON.stringify([recordOf(first, { principal: 'alice' })]));
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { call } = await server({ keyFile: path });
    expect((await call('/runs', bearer(first))).status).toBe(200);
    writeFileSync(path, JSON.stringify([recordOf(second, { principal: 'alice' })]));
    vi.advanceTimersByTime(5_000);
    expect((await call('/runs', bearer(second))).status).toBe(200);
    expect((await call('/runs', bearer(first))).status).toBe(401);
  });
});

describe('wrong credentials', () => {
  it('are refused with 429 after twenty in a minute, while good ones of the address still work', async () => {
    const { call } = await server({ keys });
    const wrong = () => call('/runs', bearer(makeApiKey().key));
    const statuses = [];
    for (let count = 0; count < 25; count += 1) statuses.push((await wrong()).status);
    expect(statuses.slice(0, 19)).toEqual(Array(19).fill(401));
    expect(statuses.at(-1)).toBe(429);
    const { headers, body } = await wrong();
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(JSON.parse(body).data.reason).toBe('rate_limited');
    expect((await call('/runs', bearer(alice))).status).toBe(200);
    expect((await call('/runs', bearer(makeApiKey().key), { remoteAddress: '198.51.100.7' })).status).toBe(401);
  });

  it('count for a network of IPv6 together', async () => {
    const { call } = await server({ keys });
    const from = (remoteAddress: string) => call('/runs', bearer('rvk_x'), { remoteAddress });
    for (let count = 0; count < 25; count += 1) await from(`2001:db8:1:2:${count}::1`);
    expect((await from('2001:db8:1:2:ffff::1')).status).toBe(429);
    expect((await from('2001:db8:1:3::1')).status).toBe(401);
  });

  it('count for the client behind a trusted proxy, and a client cannot choose its address', async () => {
    const { call } = await server({ keys }, { trustProxy: ['10.0.0.0/8'] });
    const from = async (remoteAddress: string, forwarded: string) =>
      (await call('/runs', { ...bearer('rvk_x'), 'x-forwarded-for': forwarded }, { remoteAddress })).status;
    for (let count = 0; count < 25; count += 1) await from('10.1.2.3', '198.51.100.1');
    expect(await from('10.1.2.3', '198.51.100.1')).toBe(429);
    expect(await from('10.1.2.3', '198.51.100.2')).toBe(401);
    // What the client itself has sent stands before the address that the proxy has added.
    expect(await from('10.1.2.3', '198.51.100.9, 198.51.100.1')).toBe(429);
    for (let count = 0; count < 25; count += 1) await from('192.0.2.1', `198.51.100.${count}`);
    expect(await from('192.0.2.1', '198.51.100.77')).toBe(429);
  });

  it('do not count where there are none', async () => {
    const { call } = await server({ keys });
    for (let count = 0; count < 30; count += 1) expect((await call('/runs')).status).toBe(401);
  });

  it('stop tokens from being verified, but not the app’s known ones', async () => {
    // In the past: ids that are made in the future would stay there for all tests of this process.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 61_000 });
    onTestFinished(() => void vi.useRealTimers());
    const tokens = new TokenIssuer();
    const { url } = await serveKeys(tokens);
    const [known, fresh] = [await tokens.sign(), await tokens.sign({ sub: 'bob' })];
    const { call } = await server({ jwt: { issuer, audience, jwks: url } });
    expect((await call('/runs', bearer(known))).status).toBe(200);
    for (let count = 0; count < 20; count += 1) await call('/runs', bearer('a.b.c'));
    expect((await call('/runs', bearer(fresh))).status).toBe(429);
    expect((await call('/runs', bearer(known))).status).toBe(200);
    // Also where the known token has to be verified again.
    vi.useRealTimers();
    for (let count = 0; count < 20; count += 1) await call('/runs', bearer('a.b.c'));
    expect((await call('/runs', bearer(fresh))).status).toBe(429);
    expect((await call('/runs', bearer(known))).status).toBe(200);
  });
});

describe('a request with a JWT', () => {
  it('is answered with a challenge that leads to the issuer', async () => {
    const tokens = new TokenIssuer();
    const { url } = await serveKeys(tokens);
    const auth = { jwt: { issuer, audience, jwks: url } };
    const { call } = await server(auth, { publicUrl: 'https://agents.example.com/acp/', protocols: ['mcp'] });
    const metadata = 'https://agents.example.com/acp/.well-known/oauth-protected-resource';
    expect((await call('/runs')).challenge).toContain(`resource_metadata="${metadata}"`);
    expect((await call('/runs', bearer('a.b.c'))).challenge).toContain('error="invalid_token"');
    const document = await call('/.well-known/oauth-protected-resource');
    expect(JSON.parse(document.body)).toMatchObject({
      resource: 'https://agents.example.com/acp',
      authorization_servers: [issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: expect.arrayContaining(['runs:write']),
    });
    // Where a client looks that knows only the address of MCP.
    const ofPath = await call('/.well-known/oauth-protected-resource/mcp');
    expect([ofPath.status, ofPath.body]).toEqual([200, document.body]);
    expect((await call('/runs', bearer(await tokens.sign()))).status).toBe(200);
  });

  it('needs no such document where there are only keys', async () => {
    const { call } = await server({ keys });
    expect((await call('/.well-known/oauth-protected-resource', bearer(alice))).status).toBe(404);
    expect((await call('/runs')).challenge).not.toContain('resource_metadata');
  });

  it('is answered with 503, not 401, where the issuer was never there', async () => {
    const tokens = new TokenIssuer();
    const { url, state } = await serveKeys(tokens);
    state.isAway = true;
    const { call } = await server({ jwt: { issuer, audience, jwks: url } });
    const { status, headers, body } = await call('/runs', bearer(await tokens.sign()));
    expect(status).toBe(503);
    expect(headers['retry-after']).toBeDefined();
    expect(JSON.parse(body).data.reason).toBe('auth_unavailable');
  });
});

describe('a scheme of the app', () => {
  it('is asked where there is neither key nor JWT, and sees no body', async () => {
    const seen: unknown[] = [];
    const { call } = await server({
      keys,
      authenticate: async (request) => {
        seen.push([request.method, request.url, request.ip, request.headers.cookie]);
        return request.headers.cookie === 'user=bob' ? { id: 'bob', scopes: ['runs:read'] } : undefined;
      },
    });
    expect((await call('/runs?limit=1', { cookie: 'user=bob' })).status).toBe(200);
    expect(seen).toEqual([['GET', '/runs?limit=1', '127.0.0.1', 'user=bob']]);
    expect((await call('/runs', { cookie: 'user=eve' })).status).toBe(401);
    expect((await call('/runs', bearer(alice))).status).toBe(200);
    expect(seen).toHaveLength(2);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('secret detail');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret detail'))],
    ['returns no principal', () => Object({ name: 'bob' })],
    ['returns an empty id', () => ({ id: '', scopes: ['admin'] })],
  ])('that %s refuses the request, and its error is only in the log', async (_name, authenticate) => {
    const { call } = await server({ authenticate });
    const { status, body } = await call('/runs', { cookie: 'user=bob' });
    expect(status).toBe(401);
    expect(body).not.toContain('secret detail');
  });

  it('cannot make principals of another kind', async () => {
    const seen: unknown[] = [];
    const spy = agent('spy', (_, { principal }) => {
      seen.push(principal);
      return 'done';
    });
    const anonymous: Principal = { id: 'operator', kind: 'anonymous', scopes: ['runs:write'] };
    const { call } = await server({ authenticate: () => anonymous }, { agents: [spy] });
    await call('/runs', {}, { method: 'POST', payload: ask('spy') });
    expect(seen).toMatchObject([{ id: 'operator', kind: 'custom' }]);
  });

  it('refuses a principal whose name no store would take', async () => {
    for (const id of ['\ud800', 'x'.repeat(1_000)]) {
      const { call } = await server({ authenticate: () => ({ id, scopes: ['runs:read'] }) });
      expect((await call('/runs')).status).toBe(401);
    }
  });
});

describe('the OpenAPI document', () => {
  const documentOf = async (options: Partial<ServerOptions>) => {
    const app = await createServer({ agents: [echo], playground: false, ...options });
    onTestFinished(() => app.close());
    return (await app.inject('/openapi.json')).json();
  };

  it('names the scope of each call, which the server asks for', async () => {
    const { paths, components } = await documentOf({ auth: { keys } });
    expect(components.securitySchemes.token).toMatchObject({ type: 'http', scheme: 'bearer' });
    expect(paths['/runs'].post.security).toEqual([{ token: ['runs:write'] }]);
    expect(paths['/health'].get.security).toEqual([]);
    const { call } = await server({ keys: [recordOf(reader, { principal: 'reader', scopes: [] })] });
    for (const [path, methods] of Object.entries<Record<string, { security: { token: string[] }[] }>>(paths)) {
      for (const [method, { security }] of Object.entries(methods)) {
        const url = path.replace(/\{\w+\}/g, '11111111-2222-4333-8444-555555555555');
        const { status, challenge } = await call(url, bearer(reader), {
          method: method === 'get' ? 'GET' : method === 'post' ? 'POST' : 'DELETE',
        });
        if (security.length === 0) expect([path, status]).toEqual([path, 200]);
        else expect([path, challenge]).toEqual([path, expect.stringContaining(`scope="${security[0]?.token.join()}"`)]);
      }
    }
  });

  it('has no scheme where authentication is off', async () => {
    const { paths, components } = await documentOf({});
    expect(components.securitySchemes).toBeUndefined();
    expect(paths['/runs'].post.security).toBeUndefined();
  });
});

describe('the start fails', () => {
  it('where authentication has no scheme', async () => {
    await expect(server({})).rejects.toThrow('auth: expected keys, keyFile, jwt or authenticate; got none');
  });

  it('where a secret of tickets is short', async () => {
    await expect(server({ keys, ticketSecrets: ['short'] })).rejects.toThrow('at least 32 characters');
  });

  it('where a route declares neither a scope nor that it is open', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    const registered = app.register(async (inner) => {
      await rivulet(inner, { agents: [echo], docs: false, playground: false, auth: { keys } });
      inner.get('/forgotten', async () => 'hello');
    });
    await expect(registered).rejects.toThrow(/GET \/forgotten: expected config/);
  });
});

it('keys and tokens are in no line of the log, and neither are tickets', async () => {
  const lines: string[] = [];
  const logger = { level: 'trace', stream: { write: (line: string) => void lines.push(line) } };
  const { call } = await server(
    {
      keys,
      authenticate: () => {
        throw new Error('broken');
      },
    },
    { logger },
  );
  const { body } = await call('/runs', bearer(alice), {
    method: 'POST',
    payload: ask('never', 'hi', { mode: 'async' }),
  });
  const { run_id } = JSON.parse(body);
  const ticket = await call(`/runs/${run_id}/stream-ticket`, bearer(alice), { method: 'POST' });
  const { url } = JSON.parse(ticket.body);
  await call(url);
  await call(`${url}x`);
  await call('/runs', { 'x-api-key': reader });
  const wrong = makeApiKey().key;
  await call('/runs', bearer(wrong));
  await call('/runs', { authorization: 'Basic c2VjcmV0', cookie: 'session=topsecret' });
  for (const path of [`/runs/${wrong}`, `/${wrong}`, `/runs/x?key=${wrong}`]) {
    expect((await call(path, bearer(alice))).body).not.toContain(wrong);
  }
  expect(lines.length).toBeGreaterThan(5);
  const log = lines.join('');
  for (const secret of [alice, reader, wrong, 'c2VjcmV0', 'topsecret', 'rvs_', 'rvk_'])
    expect(log).not.toContain(secret);
});

it('metrics count the credentials that were accepted and refused, for callers with the scope', async () => {
  const scraper = makeApiKey().key;
  const all = [...keys, recordOf(scraper, { principal: 'prometheus', scopes: ['metrics:read'] })];
  const { call } = await server({ keys: all }, { metrics: true });
  await call('/runs', bearer(alice));
  await call('/runs', bearer(alice.slice(0, -1) + (alice.endsWith('x') ? 'y' : 'x')));
  expect((await call('/metrics', bearer(reader))).status).toBe(403);
  const { status, body } = await call('/metrics', bearer(scraper));
  expect(status).toBe(200);
  expect(body).toContain('rivulet_auth_total{kind="key",outcome="accepted"} 3');
  expect(body).toContain('rivulet_auth_total{kind="unknown",outcome="refused"} 1');
});
