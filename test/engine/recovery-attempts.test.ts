import { ignoreElements, merge, NEVER } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RecordingStore } from '../../src/testing/cut-everywhere.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { durable } from '../support/agents.ts';
import { begin } from '../support/lives.ts';
import { ask, type Served, serveApi } from '../support/serve.ts';

describe('a durable run that is re-entered again and again', () => {
  it('fails after some recovery attempts without progress', async () => {
    const agent = durable('stuck', () => NEVER);
    const store = new RecordingStore();
    const first = await serveApi([agent], { store });
    const { run_id } = await (await first.post('/runs', ask('stuck', 'go', { mode: 'async' }))).json();
    for (let life = 0; life < 3; life += 1) {
      await serveApi([agent], { store });
      expect((await (await first.get(`/runs/${run_id}`)).json()).status).toBe('in-progress');
    }
    await serveApi([agent], { store });
    const served = await serveApi([agent], { store });
    const run: Run = await (await served.get(`/runs/${run_id}`)).json();
    expect(run.error).toMatchObject({
      code: 'server_error',
      data: { reason: 'recovery_exhausted' },
      message: expect.stringContaining('3 times'),
    });
  });

  it('that awaits beside a step fails as well after some attempts, because the step may be what stops the server', async () => {
    const agent = durable('stuck', (_, context) =>
      merge(
        context.await('?').pipe(ignoreElements()),
        context.step('poison', () => NEVER),
      ),
    );
    const store = new RecordingStore();
    const first = await serveApi([agent], { store });
    const { run_id } = await (await first.post('/runs', ask('stuck', 'go', { mode: 'async' }))).json();
    const runOf = async ({ get }: Served): Promise<Run> => (await get(`/runs/${run_id}`)).json();
    await expect.poll(async () => (await runOf(first)).status).toBe('awaiting');
    for (let life = 0; life < 3; life += 1) {
      expect(await runOf(await serveApi([agent], { store }))).toMatchObject({ status: 'awaiting' });
    }
    const run = await runOf(await serveApi([agent], { store }));
    expect(run).toMatchObject({ status: 'failed', error: { data: { reason: 'recovery_exhausted' } } });
  });

  it('that goes on for a minute after its re-entry has all attempts again: it is not what stops the server', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const store = new RecordingStore();
    const agent = durable('waits', () => NEVER);
    const limits = { idleTimeout: 0 };
    const before = await startEngine([agent], store, limits);
    const run_id = await begin(before, 'waits');
    const engine = await startEngine([agent], store, limits);
    const attempts = async () => (await store.run(run_id))?.attempts;
    await vi.advanceTimersByTimeAsync(59_000);
    expect(await attempts()).toBe(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await attempts()).toBe(0);
    await before.stop();
    await engine.stop();
  });
});
