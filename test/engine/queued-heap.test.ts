import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { newId } from '../../src/engine/ids.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { startEngine } from '../../src/testing/engine.ts';
import { never } from '../support/agents.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Bytes of the heap that each of some runs takes while it waits behind the run of its session that goes on. */
async function bytesPerRun(queued: number): Promise<number> {
  const store = new MemoryStore();
  const engine = await startEngine([never], store, { queued: 0 });
  const session_id = newId();
  const add = async (): Promise<void> => {
    const input = [{ parts: [{ content: 'hi' }] }];
    await engine.create({ agent_name: 'never', session_id, input }, { if_busy: 'enqueue' });
  };
  await add();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < queued; n += 1) await add();
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  expect(await store.count(session_id)).toBe(queued + 1);
  await engine.stop();
  return bytes / queued;
}

it('keeps each queued run of a session in the same memory, however many there are', async () => {
  // Compiled code does not count.
  await bytesPerRun(500);
  const few = await bytesPerRun(500);
  // Each takes 1,220 bytes, most of them in the store, and somewhat more on newer Nodes.
  expect(await bytesPerRun(2_000)).toBeLessThan(1.5 * few);
});
