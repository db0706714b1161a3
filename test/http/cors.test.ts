import { describe, expect, it } from 'vitest';
import { makeApiKey } from '../../src/http/auth/api-key.ts';
import { recordOf } from '../../src/http/auth/key-records.ts';
import { echo } from '../support/agents.ts';
import { ask, serveApi } from '../support/serve.ts';

const app = 'https://app.example.com';

describe('pages of other origins', () => {
  it('get no headers of CORS by default', async () => {
    const served = await serveApi([echo]);
    const own: Record<string, string> = { origin: new URL(served.url).origin };
    for (const headers of [{}, own]) {
      const response = await served.get('/agents', headers);
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    expect((await served.get('/agents', { origin: app })).status).toBe(403);
  });

  it('that are allowed may read answers and streams, and ask before they write', async () => {
    const { key } = makeApiKey();
    const keys = [recordOf(key, { principal: 'alice', scopes: ['runs:write', 'runs:read'] })];
    const served = await serveApi([echo], { allowedOrigins: [`${app}/`], auth: { keys } });
    const preflight = await fetch(`${served.url}/runs/x`, {
      method: 'OPTIONS',
      headers: {
        origin: app,
        'access-control-request-method': 'DELETE',
        'access-control-request-headers': 'authorization,x-stainless-os',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toContain('DELETE');
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,x-stainless-os');
    for (const mode of ['sync', 'stream']) {
      const headers = { origin: app, authorization: `Bearer ${key}` };
      const response = await served.post('/runs', ask('echo', 'hi', { mode }), headers);
      expect(response.status).toBe(200);
      expect(response.headers.get('access-control-allow-origin')).toBe(app);
      expect(response.headers.get('access-control-expose-headers')).toBe('*');
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
      await response.text();
    }
    // A refusal can be read as well: otherwise the page could not tell it from a broken network.
    const refused = await served.get('/runs', { origin: app });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, app]);
    expect((await served.get('/runs', { origin: 'https://other.example.com' })).status).toBe(403);
  });

  it('that are not allowed get an Error object, also for a preflight', async () => {
    const served = await serveApi([echo], { allowedOrigins: [app] });
    const preflight = (headers: Record<string, string>, path = '/runs') =>
      fetch(`${served.url}${path}`, {
        method: 'OPTIONS',
        headers: { 'access-control-request-method': 'POST', ...headers },
      });
    const refused = await preflight({ origin: 'https://other.example.com' });
    expect([refused.status, (await refused.json()).data]).toEqual([403, { reason: 'origin_refused' }]);
    expect((await preflight({ origin: app }, '/nowhere')).status).toBe(204);
    // Preflights make no path known.
    expect((await served.get('/nowhere')).status).toBe(404);
    expect((await served.get('/nowhere')).headers.get('allow')).toBeNull();
  });
});
