import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import { type Run, RunsResponse } from '../../../src/index.ts';
import { agent, askOnce, echo } from '../../support/agents.ts';
import { listed } from '../../support/details.ts';
import { ask, serveApi } from '../../support/serve.ts';

const large = agent('large', () => 'x'.repeat(100_000));
const fails = agent('fails', () => {
  throw new Error('no');
});

describe('a list of runs', () => {
  it('has everything of each run but its output', async () => {
    const served = await serveApi([echo, askOnce, fails]);
    const made: Run[] = [];
    for (const name of ['echo', 'ask', 'fails']) made.unshift(await (await served.post('/runs', ask(name))).json());
    const body = await (await served.get('/runs')).json();
    expect(Value.Check(RunsResponse, body)).toBe(true);
    expect(body.runs).toEqual(made.map((run) => listed(run, 'hi')));
  });

  it('is small, however much output its runs have', async () => {
    const served = await serveApi([large]);
    const posted = Array.from({ length: 5 }, () => served.post('/runs', ask('large')));
    for (const response of await Promise.all(posted)) await response.text();
    const text = await (await served.get('/runs?limit=100')).text();
    expect(JSON.parse(text).runs).toHaveLength(5);
    expect(text.length).toBeLessThan(5 * 1_000);
  });

  it('answers HEAD as GET, without the body', async () => {
    const served = await serveApi([large]);
    await (await served.post('/runs', ask('large'))).text();
    const [get, head] = await Promise.all(
      (['GET', 'HEAD'] as const).map((method) => served.app.inject({ method, url: '/runs' })),
    );
    expect([head?.statusCode, head?.body]).toEqual([200, '']);
    expect(head?.headers['content-length']).toBe(get?.headers['content-length']);
    expect(Number(head?.headers['content-length'])).toBeLessThan(1_000);
  });
});
