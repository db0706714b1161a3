import { describe, expect, it } from 'vitest';
import { askOnce, echo, Tap } from '../support/agents.ts';
import { nodes } from '../support/nodes.ts';
import { ask, eventsOf, finished, frames, textOf } from '../support/serve.ts';

const limits = { requestTimeout: 50, pollInterval: 20 };

describe('a server whose store is unavailable', () => {
  it('answers 503 with Retry-After, is not ready, and works again when the store is back', async () => {
    const { node, store } = nodes([echo, askOnce]);
    const a = await node('a', { limits });
    const { run_id } = await (await a.post('/runs', ask('ask'))).json();
    expect((await a.get('/ready')).status).toBe(200);
    store.fail();
    const calls = [
      a.get('/ready'),
      a.get('/runs/01890000-0000-7000-8000-000000000000'),
      a.get(`/runs/${run_id}`),
      a.post('/runs', ask('echo')),
      a.post('/runs', ask('echo', 'hi', { mode: 'stream' })),
      a.post(`/runs/${run_id}/cancel`),
    ];
    for (const response of await Promise.all(calls)) {
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
      expect((await response.json()).code).toBe('server_error');
    }
    expect((await a.get('/health')).status).toBe(200);
    store.recover();
    expect((await a.get('/ready')).status).toBe(200);
    expect(textOf(await (await a.post('/runs', ask('echo'))).json())).toBe('hi');
  });

  it('continues its runs and open streams when the store is back', async () => {
    const tap = new Tap();
    const { node, store, queue } = nodes([tap.agent]);
    const [a, b] = [await node('a', { limits }), await node('b', { limits })];
    queue.next = 'b';
    const { run_id } = await (await a.post('/runs', ask('tap', 'x', { mode: 'async' }))).json();
    await tap.started();
    const url = `/runs/${run_id}/events`;
    const streams = await Promise.all([a, b].map((one) => one.get(url, { accept: 'text/event-stream' })));
    tap.push('one ');
    store.fail();
    tap.push('two ');
    // Long enough for a few failed retries.
    expect((await a.get('/ready')).status).toBe(503);
    expect((await a.get('/ready')).status).toBe(503);
    store.recover();
    tap.push('three ');
    tap.complete();
    for (const stream of streams) {
      const seen = await frames(stream);
      expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
      expect(seen.map(({ event }) => event)).toEqual(await eventsOf(a, run_id));
    }
    expect(textOf(await finished(a, run_id))).toBe('one two three ');
  });

  it('cancels the run of a request that timed out, if the store takes it later', async () => {
    const { node, store, queue } = nodes([echo]);
    const a = await node('a', { limits, worker: false });
    queue.next = 'nothing';
    store.fail();
    expect((await a.post('/runs', ask('echo', 'hi', { mode: 'async' }))).status).toBe(503);
    store.recover();
    let runs: { status: string }[] = [];
    while (runs[0]?.status !== 'cancelled') runs = (await (await a.get('/runs')).json()).runs;
    expect(runs).toHaveLength(1);
  });
});
