import { ignoreElements, merge, NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { durable } from '../support/agents.ts';
import { engineOf } from '../support/engine.ts';
import { begin } from '../support/lives.ts';
import { nodes } from '../support/nodes.ts';
import { ask, type Served, serveApi } from '../support/serve.ts';
import { turn } from '../support/turn.ts';

/** Awaits beside a step that never ends. */
const stuck = durable('stuck', (_, context) =>
  merge(
    context.await('?').pipe(ignoreElements()),
    context.step('poison', () => NEVER),
  ),
);

describe('a durable run that is re-entered again and again', () => {
  // A run that may be what stops its process waits for its turn: for some checks, of `sweepInterval` each.
  const limits = { sweepInterval: 5 };

  it('fails after some recovery attempts without progress', async () => {
    const agent = durable('stuck', () => NEVER);
    const store = new RecordingStore();
    const first = await serveApi([agent], { store });
    const { run_id } = await (await first.post('/runs', ask('stuck', 'go', { mode: 'async' }))).json();
    await expect.poll(async () => (await store.run(run_id))?.status).toBe('in-progress');
    for (let life = 1; life <= 3; life += 1) {
      await serveApi([agent], { store, limits });
      await expect.poll(async () => (await store.run(run_id))?.attempts).toBe(life);
      expect((await (await first.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
    }
    const served = await serveApi([agent], { store, limits });
    const run: Run = await (await served.get(`/runs/${run_id}`)).json();
    expect(run.error).toMatchObject({
      code: 'server_error',
      data: { reason: 'recovery_exhausted' },
      message: expect.stringContaining('3 times'),
    });
  });

  it('that awaits beside a step fails as well after some attempts, because the step may be what stops the server', async () => {
    const store = new RecordingStore();
    const first = await serveApi([stuck], { store });
    const { run_id } = await (await first.post('/runs', ask('stuck', 'go', { mode: 'async' }))).json();
    const runOf = async ({ get }: Served): Promise<Run> => (await get(`/runs/${run_id}`)).json();
    await expect.poll(async () => (await runOf(first)).status).toBe('awaiting');
    for (let life = 1; life <= 3; life += 1) {
      const served = await serveApi([stuck], { store, limits });
      await expect.poll(async () => (await store.run(run_id))?.attempts).toBe(life);
      expect(await runOf(served)).toMatchObject({ status: 'awaiting' });
    }
    const run = await runOf(await serveApi([stuck], { store, limits }));
    expect(run).toMatchObject({ status: 'failed', error: { data: { reason: 'recovery_exhausted' } } });
  });

  it('has all attempts again when it gets a reply, also through another node', async () => {
    const { node, queue, store } = nodes([stuck]);
    const limits = { attempts: 1 };
    const first = await node('first', { limits });
    const { run_id } = await (await first.post('/runs', ask('stuck', 'go', { mode: 'async' }))).json();
    const rowOf = async () => store.run(run_id);
    await expect.poll(async () => (await rowOf())?.status).toBe('awaiting');
    await node('second', { limits });
    queue.next = 'second';
    queue.expireLeases('first');
    await expect.poll(async () => (await rowOf())?.attempts).toBe(1);
    const front = await node('front', { worker: false, limits });
    const { epoch = 0 } = (await rowOf()) ?? {};
    const await_resume = { type: 'message', message: { parts: [{ content: 'x' }] } };
    expect((await front.post(`/runs/${run_id}`, { await_resume, mode: 'async' })).status).toBe(202);
    // The node that has the run takes the reply.
    expect(await rowOf()).toMatchObject({ epoch, attempts: 0, status: 'in-progress' });
  });

  // It may wait for weeks, while other runs stop the server.
  it('has all attempts again once it has awaited for a minute, and not while it works', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const store = new RecordingStore();
    const limits = { idleTimeout: 0 };
    const agents = [stuck, durable('works', () => NEVER)];
    const before = await engineOf(agents, store, limits);
    const ids = [await begin(before, 'stuck'), await begin(before, 'works')];
    const rowsOf = () => Promise.all(ids.map((run_id) => store.run(run_id)));
    while ((await rowsOf()).some((row) => row?.status === 'created')) await turn();
    await vi.advanceTimersByTimeAsync(10);
    await engineOf(agents, store, limits);
    const attempts = async () => (await rowsOf()).map((row) => row?.attempts);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(await attempts()).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await attempts()).toEqual([0, 1]);
  });
});
