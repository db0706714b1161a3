import { concat, interval, map, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { defineAgent } from '../../src/index.ts';
import { agent, askOnce, echo, never, Tap } from '../support/agents.ts';
import { ask, finished, framesUntil, type Served, serve } from '../support/serve.ts';

const sse = { accept: 'text/event-stream' };
const quick = { sweepInterval: 2 };

describe('a run that takes too long', () => {
  it('at its work fails with run_timeout', async () => {
    const served = await serve([agent('busy', () => interval(1).pipe(map(String)))], {
      limits: { ...quick, runTimeout: 20 },
    });
    const run: Run = await (await served.post('/runs', ask('busy'))).json();
    expect(run.error).toMatchObject({ code: 'server_error', data: { reason: 'run_timeout' } });
  });

  it('without a word fails with idle_timeout', async () => {
    const served = await serve([agent('mute', () => concat(of('a'), NEVER))], {
      limits: { ...quick, idleTimeout: 20 },
    });
    const run: Run = await (await served.post('/runs', ask('mute'))).json();
    expect(run.error).toMatchObject({ code: 'server_error', data: { reason: 'idle_timeout' } });
  });

  it('waiting for an answer fails with await_timeout, and its work does not count meanwhile', async () => {
    const served = await serve([askOnce], { limits: { ...quick, runTimeout: 10, idleTimeout: 10, awaitTimeout: 60 } });
    const run: Run = await (await served.post('/runs', ask('ask'))).json();
    expect(run.status).toBe('awaiting');
    expect((await finished(served, run.run_id)).error).toMatchObject({
      code: 'server_error',
      data: { reason: 'await_timeout' },
    });
  });

  it('goes on for ever where the time is zero', async () => {
    const served = await serve([never, askOnce], {
      limits: { ...quick, runTimeout: 0, idleTimeout: 0, awaitTimeout: 0 },
    });
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const waiting: Run = await (await served.post('/runs', ask('ask'))).json();
    expect(waiting.await_request?.expires_at).toBeUndefined();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  });
});

describe('a server with as many runs as it takes', () => {
  it('answers 503 with Retry-After, until one is over', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent, echo], { limits: { running: 1 } });
    const { run_id } = await (await served.post('/runs', ask('tap', 'a', { mode: 'async' }))).json();
    const refused = await served.post('/runs', ask('echo'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ code: 'server_error' });
    await tap.started();
    tap.complete();
    await finished(served, run_id);
    while ((await served.post('/runs', ask('echo'))).status === 503)
      await new Promise((resolve) => setImmediate(resolve));
  });

  it('counts neither those that await nor those that are queued', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent, askOnce, echo], { limits: { running: 2 } });
    const session_id = '01a1fd1f-f84b-7740-b3c6-734c49e187db';
    for (let count = 0; count < 3; count += 1) await served.post('/runs', ask('ask'));
    for (let count = 0; count < 3; count += 1) {
      await served.post('/runs', ask('tap', 'a', { mode: 'async', session_id }), { 'if-busy': 'enqueue' });
    }
    expect((await served.post('/runs', ask('echo'))).status).toBe(200);
  });
});

describe('a reader that leaves', () => {
  const policies: [string, string, string | undefined][] = [
    ['by the agent', 'cancel', undefined],
    ['by the request', 'continue', 'cancel'],
  ];
  it.each(policies)('cancels the run where that is wished: %s', async (_, option, header) => {
    const wish = defineAgent({ name: 'wish', description: 'a' }, () => NEVER, {
      on_disconnect: option === 'cancel' ? 'cancel' : 'continue',
    });
    const served = await serve([wish]);
    const response = await served.post(
      '/runs',
      ask('wish', 'a', { mode: 'stream' }),
      header === undefined ? {} : { 'on-disconnect': header },
    );
    const run_id = response.headers.get('run-id') ?? '';
    await framesUntil(response, ({ event }) => event.type === 'run.in-progress');
    await cancelled(served, run_id);
  });

  it('of a sync request cancels it as well', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent]);
    const abort = new AbortController();
    const sent = fetch(`${served.url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'on-disconnect': 'cancel' },
      body: JSON.stringify(ask('tap')),
      signal: abort.signal,
    });
    await tap.started();
    abort.abort();
    await expect(sent).rejects.toThrow();
    const [run] = (await (await served.get('/runs')).json()).runs;
    await cancelled(served, run.run_id);
  });

  it('and is back in time does not cancel it with grace; one that stays away does', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent]);
    const response = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }), { 'on-disconnect': 'grace=0.2' });
    const run_id = response.headers.get('run-id') ?? '';
    await framesUntil(response, ({ event }) => event.type === 'run.in-progress');
    const back = await served.get(`/runs/${run_id}/events`, sse);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
    await back.body?.cancel();
    await cancelled(served, run_id);
  });

  it('leaves the run alone where another still reads, and where nobody wished otherwise', async () => {
    const tap = new Tap();
    const served = await serve([tap.agent]);
    const first = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }), { 'on-disconnect': 'cancel' });
    const run_id = first.headers.get('run-id') ?? '';
    const second = await served.get(`/runs/${run_id}/events`, sse);
    await first.body?.cancel();
    await tap.started();
    tap.push('a');
    tap.complete();
    expect(await second.text()).toContain('run.completed');
  });

  it('does not count where the answer was at its end', async () => {
    const served = await serve([askOnce]);
    const response = await served.post('/runs', ask('ask', 'a', { mode: 'stream' }), { 'on-disconnect': 'cancel' });
    await response.text();
    const run_id = response.headers.get('run-id') ?? '';
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('awaiting');
  });
});

/** Looks until the run is cancelled; as a reader of its stream, this would itself be one who is there. */
async function cancelled(served: Served, run_id: string): Promise<void> {
  while ((await (await served.get(`/runs/${run_id}`)).json()).status !== 'cancelled') {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
