import type { FastifyInstance } from 'fastify';
import type { Run, Session } from 'rivulet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../examples/embed.ts';

let app: FastifyInstance;

beforeAll(async () => {
  app = await build('https://shop.example.com');
});
afterAll(() => app.close());

const get = (url: string) => app.inject({ method: 'GET', url });
const run = () =>
  app.inject({
    method: 'POST',
    url: '/agents-api/runs',
    payload: { agent_name: 'greet', input: [{ parts: [{ content: 'Hello' }] }] },
  });

describe('the app around Rivulet', () => {
  it('serves its own routes', async () => {
    expect((await get('/orders/7')).json()).toEqual({ order: 7 });
  });

  it('responds with its own 404', async () => {
    const response = await get('/nowhere');
    expect(response.statusCode).toBe(404);
    expect(response.json()).toEqual({ problem: 'no page at /nowhere' });
    expect((await get('/agents')).json()).toEqual({ problem: 'no page at /agents' });
  });

  it('handles its own errors, thrown or of validation', async () => {
    const thrown = await get('/orders/13');
    expect(thrown.statusCode).toBe(500);
    expect(thrown.json()).toEqual({ problem: 'the warehouse is closed' });

    const invalid = await get('/orders/seven');
    expect(invalid.statusCode).toBe(400);
    expect(invalid.json()).toEqual({ problem: 'params/id must be integer' });
  });
});

describe('Rivulet inside the app', () => {
  it('hosts its agents under the prefix', async () => {
    const { agents } = (await get('/agents-api/agents')).json();
    expect(agents).toMatchObject([{ name: 'greet' }]);
    const created = await run();
    expect(created.json<Run>()).toMatchObject({ status: 'completed', output: [{ parts: [{ content: 'Good day!' }] }] });
    expect(created.headers.location).toBe(`/agents-api/runs/${created.json<Run>().run_id}`);
  });

  it.each([
    ['an unknown path', 404, 'not_found', () => get('/agents-api/nowhere')],
    ['an unknown agent', 404, 'not_found', () => get('/agents-api/agents/missing-agent')],
    ['another method', 405, 'invalid_input', () => app.inject({ method: 'DELETE', url: '/agents-api/ping' })],
    [
      'a body that does not fit',
      422,
      'invalid_input',
      () => app.inject({ method: 'POST', url: '/agents-api/runs', payload: {} }),
    ],
    [
      'a body that is not JSON',
      400,
      'invalid_input',
      () =>
        app.inject({
          method: 'POST',
          url: '/agents-api/runs',
          headers: { 'content-type': 'application/json' },
          payload: '{',
        }),
    ],
  ])('answers %s with an Error object', async (_what, status, code, request) => {
    const response = await request();
    expect(response.statusCode).toBe(status);
    expect(response.json()).toEqual({ code, message: expect.any(String), data: { reason: expect.any(String) } });
  });

  it('has the prefix in the URLs of a session, and serves them', async () => {
    const { session_id } = (await run()).json<Run>();
    const session = (await get(`/agents-api/sessions/${session_id}`)).json<Session>();
    expect(session.history).toHaveLength(2);
    for (const url of session.history) {
      expect(url).toMatch(/^https:\/\/shop\.example\.com\/agents-api\/resources\//);
      expect((await get(new URL(url).pathname)).statusCode).toBe(200);
    }
  });
});
