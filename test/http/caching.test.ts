import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createServer, rivulet } from '../../src/index.ts';
import { echo } from '../support/agents.ts';

/** Routes whose answers caches may keep, because they have no data of a caller. */
const isPublic = /\/assets\/|\/\.well-known\//;

interface Known {
  readonly method: string;
  readonly url: string;
  readonly streams: boolean;
}

/** A server with all protocols, inside of an app that lists its routes. */
async function withRoutes() {
  const app = Fastify();
  onTestFinished(() => app.close());
  const routes: Known[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    for (const one of [method].flat()) routes.push({ method: one, url, streams: config?.streams === true });
  });
  await app.register(rivulet, { agents: [echo] });
  await app.ready();
  return { app, routes };
}

const addressOf = (url: string): string =>
  url
    .replace(/:verb\(\^\(\?:([^|)]+).*?\)\$\)/g, '$1')
    .replace(/:(name|agent)\b/g, 'echo')
    .replace(/:run_id\b/g, '00000000-0000-7000-8000-000000000000')
    .replace(/:\w+/g, 'x')
    .replace(/\*/g, 'x');

describe('caches', () => {
  it('are told to keep no answer of any route, unless the answer says otherwise', async () => {
    const { app, routes } = await withRoutes();
    expect(routes.length).toBeGreaterThan(50);
    for (const { method, url } of routes) {
      const { headers, statusCode } = await app.inject({ method: method as 'GET', url: addressOf(url) });
      const told = String(headers['cache-control']);
      if (!isPublic.test(url))
        expect([method, url, statusCode, told]).toEqual([
          method,
          url,
          statusCode,
          expect.stringMatching(/no-store|no-cache/),
        ]);
    }
  });

  it('tell the forms of an address apart by Accept, on every route that has a stream', async () => {
    const { app, routes } = await withRoutes();
    const both = routes.filter(({ streams, method }) => streams && method === 'GET');
    expect(both.length).toBeGreaterThan(3);
    for (const { url } of both) {
      const { headers } = await app.inject(addressOf(url));
      expect([url, headers.vary]).toEqual([url, 'Accept']);
    }
  });

  it('see the names that CORS and a page add to Vary', async () => {
    const app = await createServer({ agents: [echo], allowedOrigins: ['https://a.example', 'https://b.example'] });
    onTestFinished(() => app.close());
    const { headers } = await app.inject({ url: '/runs', headers: { origin: 'https://a.example' } });
    expect(String(headers.vary).split(', ').toSorted()).toEqual(['Accept', 'Origin']);
  });
});

describe('X-Forwarded-Host of a trusted proxy', () => {
  it.each(['evil.example', 'agents.example.com'])('is held to the names of the server: %s', async (name) => {
    const app = await createServer({ agents: [echo], trustProxy: ['127.0.0.1'], allowedHosts: ['agents.example.com'] });
    onTestFinished(() => app.close());
    const { statusCode, body } = await app.inject({
      url: '/.well-known/agent-card.json',
      headers: { 'x-forwarded-host': name },
    });
    expect(statusCode).toBe(name === 'evil.example' ? 421 : 200);
    if (statusCode === 200) expect(body).toContain('http://agents.example.com/');
  });
});
