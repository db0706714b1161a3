import { NEVER } from 'rxjs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { begin } from '../support/lives.ts';
import { turn } from '../support/turn.ts';

// In a process of its own: the timers that are counted are those of the whole process.
it('an engine that stops leaves no timer, although runs work and a disconnected reader may come back', async () => {
  // Also counts timers that do not keep the process alive. They stand still, and the engine needs none of them to stop.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  let begun = 0;
  const agent = defineAgent(
    { name: 'works', description: 'Works without end.' },
    () => {
      begun += 1;
      return NEVER;
    },
    { durable: true, on_disconnect: 'grace=60' },
  );
  const store = new MemoryStore();
  const first = await startEngine([agent], store);
  await begin(first, 'works');
  while (begun < 1) await turn();
  await first.stop();
  expect(vi.getTimerCount()).toBe(0);
  // It has the run that the first one left, and one of its own.
  const engine = await startEngine([agent], store);
  const run_id = await begin(engine, 'works');
  while (begun < 3) await turn();
  const periodic = vi.getTimerCount();
  expect(periodic).toBeGreaterThan(0);
  const cursor = await engine.openCursor(run_id);
  const disconnect = engine.connectReader(cursor);
  disconnect(true);
  expect(vi.getTimerCount()).toBe(periodic + 1);
  const disconnectLate = engine.connectReader(cursor);
  await engine.stop();
  expect(vi.getTimerCount()).toBe(0);
  // Its connection was closed by the server; the run belongs to the next process.
  disconnectLate(true);
  engine.connectReader(cursor)(true);
  expect(vi.getTimerCount()).toBe(0);
});

it('an engine that has stopped reads nothing more for an agent whose store fails', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  let reads = 0;
  const store = new MemoryStore();
  store.session = () => {
    reads += 1;
    return Promise.reject(new Error('away'));
  };
  const agent = defineAgent({ name: 'reads', description: 'Reads its state.' }, (_, context) => {
    context.session.state().catch(() => undefined);
    return NEVER;
  });
  const engine = await startEngine([agent], store, { shutdownGrace: 0 });
  await begin(engine, 'reads');
  while (reads < 1) await turn();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(reads).toBeGreaterThan(3);
  const stopped = engine.stop();
  // The agent's time to end.
  await vi.advanceTimersByTimeAsync(1);
  await stopped;
  const before = reads;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads - before).toBeLessThanOrEqual(1);
  expect(vi.getTimerCount()).toBe(0);
});
