import { once } from 'node:events';
import { concat, interval, map, NEVER, of } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Execution } from '../../src/engine/execution/execution.ts';
import { defineAgent, type Run } from '../../src/index.ts';
import { agent, askOnce, echo, never, Tap } from '../support/agents.ts';
import { ask, finished, framesUntil, type Served, serveApi } from '../support/serve.ts';

const sse = { accept: 'text/event-stream' };
const quick = { sweepInterval: 2 };

describe('a run that takes too long', () => {
  it('fails with run_timeout when it works for too long', async () => {
    const served = await serveApi([agent('busy', () => interval(1).pipe(map(String)))], {
      limits: { ...quick, runTimeout: 20 },
    });
    const run: Run = await (await served.post('/runs', ask('busy'))).json();
    expect(run.error).toMatchObject({ code: 'server_error', data: { reason: 'run_timeout' } });
  });

  it('fails with idle_timeout when it emits nothing for too long', async () => {
    const served = await serveApi([agent('mute', () => concat(of('a'), NEVER))], {
      limits: { ...quick, idleTimeout: 20 },
    });
    const run: Run = await (await served.post('/runs', ask('mute'))).json();
    expect(run.error).toMatchObject({ code: 'server_error', data: { reason: 'idle_timeout' } });
  });

  it('is not failed for the time in which the process was paused', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent], { limits: { ...quick, idleTimeout: 60_000 } });
    const { run_id } = await (await served.post('/runs', ask('tap', 'a', { mode: 'async' }))).json();
    await tap.started();
    const clock = performance.now.bind(performance);
    const paused = vi.spyOn(performance, 'now').mockImplementation(() => clock() + 120_000);
    const checks = vi.spyOn(Execution.prototype, 'timeoutError');
    await expect.poll(() => checks.mock.results.length).toBeGreaterThan(3);
    paused.mockRestore();
    checks.mockRestore();
    tap.complete();
    expect((await finished(served, run_id)).status).toBe('completed');
  });

  it('fails with await_timeout when no reply comes, and the await does not count as work', async () => {
    // The clocks stand still until the run awaits: a busy machine may hold it up for longer than its limits.
    vi.useFakeTimers({ toFake: ['performance', 'Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const served = await serveApi([askOnce], {
      limits: { ...quick, runTimeout: 10, idleTimeout: 10, awaitTimeout: 60 },
    });
    const run: Run = await (await served.post('/runs', ask('ask'))).json();
    expect(run.status).toBe('awaiting');
    vi.advanceTimersByTime(61);
    expect((await finished(served, run.run_id)).error).toMatchObject({
      code: 'server_error',
      data: { reason: 'await_timeout' },
    });
  });

  it('has no time-out where the limit is zero', async () => {
    const served = await serveApi([never, askOnce], {
      limits: { ...quick, runTimeout: 0, idleTimeout: 0, awaitTimeout: 0 },
    });
    const { run_id } = await (await served.post('/runs', ask('never', 'a', { mode: 'async' }))).json();
    const waiting: Run = await (await served.post('/runs', ask('ask'))).json();
    expect(waiting.await_request?.expires_at).toBeUndefined();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
  });
});

describe('a server at its limit of runs', () => {
  it('answers 503 with Retry-After until a run has ended', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent, echo], { limits: { running: 1 } });
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

  it('counts neither awaiting nor queued runs', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent, askOnce, echo], { limits: { running: 2 } });
    const session_id = '01a1fd1f-f84b-7740-b3c6-734c49e187db';
    for (let count = 0; count < 3; count += 1) await served.post('/runs', ask('ask'));
    for (let count = 0; count < 3; count += 1) {
      await served.post('/runs', ask('tap', 'a', { mode: 'async', session_id }), { 'if-busy': 'enqueue' });
    }
    expect((await served.post('/runs', ask('echo'))).status).toBe(200);
  });
});

describe('a client that disconnects', () => {
  const policies: [string, string, string | undefined][] = [
    ['by the agent', 'cancel', undefined],
    ['by the request', 'continue', 'cancel'],
  ];
  it.each(policies)('cancels the run with the policy of %s', async (_, option, header) => {
    const endless = defineAgent({ name: 'endless', description: 'a' }, () => NEVER, {
      on_disconnect: option === 'cancel' ? 'cancel' : 'continue',
    });
    const served = await serveApi([endless]);
    const response = await served.post(
      '/runs',
      ask('endless', 'a', { mode: 'stream' }),
      header === undefined ? {} : { 'on-disconnect': header },
    );
    const run_id = response.headers.get('run-id') ?? '';
    await framesUntil(response, ({ event }) => event.type === 'run.in-progress');
    await cancelled(served, run_id);
  });

  it('from a sync request cancels the run as well', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
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

  it('cancels the run with grace, unless it reconnects in time', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    // The time of grace passes when the test says so: a busy machine may need longer to reconnect.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const left = once(served.app.server, 'connection').then(([socket]) => once(socket, 'close'));
    const response = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }), { 'on-disconnect': 'grace=0.2' });
    const run_id = response.headers.get('run-id') ?? '';
    await framesUntil(response, ({ event }) => event.type === 'run.in-progress');
    const back = await served.get(`/runs/${run_id}/events`, sse);
    await left;
    vi.advanceTimersByTime(300);
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
    await back.body?.cancel();
    await cancelled(served, run_id, () => vi.advanceTimersByTime(300));
  });

  it('does not cancel the run while another client reads it, nor by default', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    const first = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }), { 'on-disconnect': 'cancel' });
    const run_id = first.headers.get('run-id') ?? '';
    const second = await served.get(`/runs/${run_id}/events`, sse);
    await first.body?.cancel();
    await tap.started();
    tap.push('a');
    tap.complete();
    expect(await second.text()).toContain('run.completed');
  });

  it('does not count after the end of the response', async () => {
    const served = await serveApi([askOnce]);
    const response = await served.post('/runs', ask('ask', 'a', { mode: 'stream' }), { 'on-disconnect': 'cancel' });
    await response.text();
    const run_id = response.headers.get('run-id') ?? '';
    expect((await (await served.get(`/runs/${run_id}`)).json()).status).toBe('awaiting');
  });
});

/** Polls until the run is cancelled; a stream would count as another connected client. */
async function cancelled(served: Served, run_id: string, meanwhile = (): void => {}): Promise<void> {
  while ((await (await served.get(`/runs/${run_id}`)).json()).status !== 'cancelled') {
    meanwhile();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
