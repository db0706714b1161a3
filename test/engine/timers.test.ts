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
  const disconnect = await engine.connectReader(run_id);
  disconnect(true);
  expect(vi.getTimerCount()).toBe(periodic + 1);
  await engine.stop();
  expect(vi.getTimerCount()).toBe(0);
});
