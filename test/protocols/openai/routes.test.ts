import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { echo } from '../../support/agents.ts';
import { serve } from '../../support/serve.ts';
import { clientOf } from './client.ts';

const small = { docs: false, playground: false };

describe('OpenAI’s addresses', () => {
  it('are under another prefix, where the server has one for them', async () => {
    const { url, get } = await serve([echo], { ...small, protocols: { openai: '/api/llm' } });
    const client = new OpenAI({ baseURL: `${url}/api/llm`, apiKey: 'none' });
    expect((await client.responses.create({ model: 'echo', input: 'hi' })).output_text).toBe('hi');
    expect((await (await get('/api/llm/unknown')).json()).error.code).toBe('route_unknown');
    // There, this is the server's own answer.
    expect((await (await get('/v1/models')).json()).code).toBe('not_found');
  });

  it('are absent where the server does not serve the protocol', async () => {
    const { get } = await serve([echo], { ...small, protocols: [] });
    expect((await get('/v1/models')).status).toBe(404);
  });

  it('may be called by the library in a page of an allowed origin', async () => {
    const origin = 'https://app.example.com';
    const { url, app } = await serve([echo], { ...small, allowedOrigins: [origin] });
    let sent: string[] = [];
    const client = clientOf(url, {
      fetch: (to, init) => {
        sent = [...new Headers(init?.headers).keys()];
        return fetch(to, init);
      },
    });
    await client.responses.stream({ model: 'echo', input: 'hi' }).finalResponse();
    const preflight = await app.inject({
      method: 'OPTIONS',
      url: '/v1/responses',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': sent.join(',') },
    });
    const allowed = String(preflight.headers['access-control-allow-headers']).toLowerCase().split(/,\s*/);
    // A browser sends these by itself.
    const own = ['accept', 'user-agent'];
    expect(sent).toContain('x-stainless-lang');
    expect(sent.filter((name) => !own.includes(name) && !allowed.includes(name))).toEqual([]);
  });
});
