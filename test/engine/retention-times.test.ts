import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Cutoffs } from '../../src/core/ports/store.ts';
import { newId } from '../../src/engine/ids.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { echo } from '../support/agents.ts';
import { ask, serveApi } from '../support/serve.ts';

/** A store that notes its sweeps, and says after each of the first ones that there is more to remove. */
class Swept extends MemoryStore {
  readonly sweeps: Cutoffs[] = [];
  more = 0;

  override async sweep(before: Cutoffs): Promise<boolean> {
    this.sweeps.push(before);
    const left = await super.sweep(before);
    return left || this.sweeps.length <= this.more;
  }
}

/** More turns than all steps of one interval take. */
async function manyTurns(): Promise<void> {
  for (let turns = 0; turns < 1_000; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** An engine whose intervals pass where the test says so. */
async function timed(store: Swept, limits: Partial<Limits>) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  const engine = await startEngine([echo], store, limits);
  onTestFinished(async () => {
    await engine.stop();
    vi.useRealTimers();
  });
  return engine;
}

describe('a server', () => {
  /** A server that has had one run, in a session of its own. */
  async function ran(store: Swept, limits: Partial<Limits>) {
    const served = await serveApi([echo], { store, limits: { sweepInterval: 2, ...limits } });
    const session_id = newId();
    const { run_id } = await (await served.post('/runs', ask('echo', 'hi', { session_id, mode: 'async' }))).json();
    await expect.poll(() => store.run(run_id)).toBeUndefined();
    return session_id;
  }

  it('removes a final run after `runTtl`, and its session after `sessionTtl`', async () => {
    const store = new Swept();
    const session_id = await ran(store, { runTtl: 1, sessionTtl: 1 });
    await expect.poll(() => store.session(session_id)).toBeUndefined();
  });

  it('keeps a session without runs for longer than its runs', async () => {
    const store = new Swept();
    const session_id = await ran(store, { runTtl: 1 });
    const { length } = store.sweeps;
    await expect.poll(() => store.sweeps.length).toBeGreaterThan(length + 2);
    expect((await store.session(session_id))?.history).toHaveLength(2);
  });
});

describe('the sweeps of one interval', () => {
  const sweepInterval = 100;

  it('go on while there is more to remove', async () => {
    const store = new Swept();
    await timed(store, { sweepInterval });
    store.more = 50;
    vi.advanceTimersByTime(sweepInterval - 1);
    await manyTurns();
    expect(store.sweeps).toHaveLength(0);
    vi.advanceTimersByTime(1);
    await manyTurns();
    // The last one has nothing left.
    expect(store.sweeps).toHaveLength(51);
  });

  it('are 200 at most; the next interval goes on', async () => {
    const store = new Swept();
    await timed(store, { sweepInterval });
    store.more = 300;
    vi.advanceTimersByTime(sweepInterval);
    await manyTurns();
    expect(store.sweeps).toHaveLength(200);
    vi.advanceTimersByTime(sweepInterval);
    await manyTurns();
    expect(store.sweeps).toHaveLength(301);
  });

  it('end when the engine stops', async () => {
    const store = new Swept();
    const engine = await timed(store, { sweepInterval });
    store.more = 200;
    vi.advanceTimersByTime(sweepInterval);
    while (store.sweeps.length < 3) await new Promise((resolve) => setImmediate(resolve));
    await engine.stop();
    expect(store.sweeps.length).toBeLessThan(10);
    await manyTurns();
    expect(store.sweeps.length).toBeLessThan(10);
  });

  it('keep runs, sessions and webhooks for 30 days, and keys for a day, by default', async () => {
    const store = new Swept();
    await timed(store, { sweepInterval });
    const day = 24 * 3_600_000;
    vi.advanceTimersByTime(sweepInterval);
    const [keys, long] = [1, 30].map((days) => new Date(Date.now() - days * day).toISOString());
    await manyTurns();
    expect(store.sweeps).toEqual([{ keys, runs: long, sessions: long, deliveries: long }]);
  });
});
