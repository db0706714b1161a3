import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rivulet } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { serve, shared } from '../support/serve.ts';

/** The words of each protocol for an address that it does not have. */
const unknown = [
  ['/nowhere', { code: 'not_found' }],
  ['/aim', { code: 'not_found' }],
  ['/v1/nowhere', { error: { type: 'not_found' } }],
  ['/v1', { error: { type: 'not_found' } }],
  ['/a2a/echo/nowhere', { error: { status: 'NOT_FOUND' } }],
  ['/a2a/echo/tenant/nowhere', { error: { status: 'NOT_FOUND' } }],
  ['/a2a/echo/nowhere/at/all', { error: { status: 'NOT_FOUND' } }],
] as const;

/** The words of each protocol for a method that an address does not take, and one that it takes. */
const refused = [
  ['/mcp', 'POST', { error: { code: -32600, data: { reason: 'method_unknown' } } }],
  ['/a2a/echo/', 'POST', { error: { code: 405, status: 'UNIMPLEMENTED' } }],
  ['/a2a/echo/message:send', 'POST', { error: { code: 405, status: 'UNIMPLEMENTED' } }],
  ['/a2a/echo/tenant/message%3Astream', 'POST', { error: { code: 405, status: 'UNIMPLEMENTED' } }],
  ['/ag-ui/echo', 'POST', { type: 'RUN_ERROR', code: 'method_unknown' }],
  ['/v1/models', 'GET', { error: { type: 'invalid_request_error', code: 'method_unknown' } }],
  ['/runs/x/stream', 'GET', { code: 'invalid_input' }],
] as const;

const defaults = shared([echo]);

describe('a method that an address does not take', () => {
  it.each(refused)('is answered in the words of the protocol of the address: %s', async (path, taken, body) => {
    const served = await defaults();
    for (const method of ['OPTIONS', 'PATCH']) {
      const response = await fetch(`${served.url}${path}`, { method });
      expect([response.status, response.headers.get('allow')?.split(', ')]).toEqual([
        405,
        expect.arrayContaining([taken]),
      ]);
      expect(await response.json()).toMatchObject(body);
    }
  });

  it('is answered with a text below AI SDK, also inside of another app', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/t/:tenant', agents: [echo] });
    const { statusCode, headers, body } = await app.inject({ method: 'PUT', url: '/t/one/ai/echo' });
    expect([statusCode, headers.allow, body]).toEqual([405, 'POST', '/t/one/ai/echo does not take PUT, only POST.']);
  });
});

describe('an address without a route', () => {
  it.each(unknown)('is answered in the words of the protocol that it is below: %s', async (path, body) => {
    const served = await defaults();
    const response = await served.get(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject(body);
  });

  it('is refused in those words as well, where the caller has no credentials', async () => {
    const served = await serve([echo], { auth: { keys: [] } });
    const response = await served.get('/v1/nowhere');
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { type: expect.any(String) } });
    const text = await served.get('/ai/echo/chat/nowhere/at/all');
    expect([text.status, text.headers.get('content-type')]).toEqual([401, 'text/plain; charset=utf-8']);
    expect(await (await served.get('/nowhere')).json()).toMatchObject({ code: expect.any(String) });
  });

  it('belongs to the longest prefix, where one protocol is served below another', async () => {
    const served = await serve([echo], { protocols: { openai: '/all', 'ai-sdk': '/all/ai' } });
    expect(await (await served.get('/all/nowhere')).json()).toMatchObject({ error: expect.anything() });
    const text = await served.get('/all/ai/echo/chat/nowhere/at/all');
    expect([text.status, text.headers.get('content-type')]).toEqual([404, 'text/plain; charset=utf-8']);
  });

  it('is answered in those words inside of another app, whose own addresses stay its own', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/t/:tenant', agents: [echo] });
    expect((await app.inject('/t/one/v1/nowhere')).json()).toMatchObject({ error: { type: 'not_found' } });
    expect((await app.inject('/t/one/nowhere')).json()).toMatchObject({ code: 'not_found' });
    expect((await app.inject('/v1/nowhere')).json()).toMatchObject({ error: 'Not Found', statusCode: 404 });
  });
});
