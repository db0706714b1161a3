import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Cutoffs } from '../../src/core/ports/store.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { deferred } from '../support/deferred.ts';
import { engineOf } from '../support/engine.ts';
import { begin, runOf, toTheEnd } from '../support/lives.ts';

const echo = defineAgent({ name: 'echo', description: 'Says one word.' }, () => 'done');

/** A store that notes what its sweeps remove. */
class Swept extends MemoryStore {
  readonly sweeps: Cutoffs[] = [];

  override async sweep(before: Cutoffs): Promise<boolean> {
    this.sweeps.push(before);
    return super.sweep(before);
  }
}

describe('a limit of zero means never', () => {
  it('for `cancelGrace`: a cancelled run waits for its agent', async () => {
    const { promise: stopped, resolve: stop } = deferred<string>();
    const deaf = defineAgent({ name: 'deaf', description: 'Ignores its signal.' }, () => stopped);
    const engine = await engineOf([deaf, echo], new MemoryStore(), { cancelGrace: 0 });
    const run_id = await begin(engine, 'deaf');
    await engine.cancel(run_id);
    // A timer of no length would have ended it meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await runOf(engine, run_id)).status).toBe('cancelling');
    stop('late');
    expect((await toTheEnd(engine, run_id)).run.status).toBe('cancelled');
  });

  it('for `idempotencyTtl`: a key is kept, also by sweeps', async () => {
    const store = new Swept();
    const engine = await engineOf([echo], store, { idempotencyTtl: 0, sweepInterval: 1 });
    const create = () =>
      engine.create({ agent_name: 'echo', input: [{ parts: [{ content: 'go' }] }] }, { idempotency_key: 'k' });
    const { run_id } = await create();
    await toTheEnd(engine, run_id);
    const { length } = store.sweeps;
    await expect.poll(() => store.sweeps.length).toBeGreaterThan(length + 1);
    expect((await create()).run_id).toBe(run_id);
  });

  it('for the times after which runs, sessions, webhooks and keys are removed', async () => {
    const store = new Swept();
    const never = { runTtl: 0, sessionTtl: 0, deliveryTtl: 0, idempotencyTtl: 0 };
    await engineOf([echo], store, { ...never, sweepInterval: 1 });
    await expect.poll(() => store.sweeps.length).toBeGreaterThan(0);
    expect(store.sweeps[0]).toEqual({ keys: '' });
  });

  it('for `running`, `queued` and `attempts`: no run is refused or given up', async () => {
    const store = new MemoryStore();
    const limits = { running: 0, queued: 0, attempts: 0 };
    const silent = defineAgent({ name: 'silent', description: 'Emits nothing.' }, () => NEVER, { durable: true });
    const session_id = '00000000-0000-4000-8000-000000000001';
    const input = [{ parts: [{ content: 'go' }] }];
    let engine = await startEngine([silent], store, limits);
    const first = await begin(engine, 'silent');
    for (let n = 0; n < 5; n += 1)
      await engine.create({ agent_name: 'silent', session_id, input }, { if_busy: 'enqueue' });
    for (let life = 0; life < 5; life += 1) {
      await engine.stop();
      engine = await startEngine([silent], store, limits);
    }
    expect((await runOf(engine, first)).status).toBe('in-progress');
    await engine.stop();
  });
});
