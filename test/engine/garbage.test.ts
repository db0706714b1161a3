import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import { LocalDispatcher } from '../../src/dispatchers/local.ts';
import { Engine } from '../../src/engine/engine.ts';
import { Registry } from '../../src/engine/registry.ts';
import { MemoryStore } from '../../src/stores/memory.ts';

setFlagsFromString('--expose-gc');
const collect: (how?: { type: 'minor' }) => void = runInNewContext('gc');
const used = (): number => getHeapStatistics().used_heap_size;

const greet = defineAgent({ name: 'greet', description: 'Says hello.' }, () => of('hello'));
const silent = { debug() {}, info() {}, warn() {}, error() {} };

async function startEngine(): Promise<Engine> {
  const engine = new Engine({
    registry: new Registry([{ agent: greet, source: 'the test' }]),
    store: new MemoryStore(),
    dispatcher: new LocalDispatcher(),
    fetchResource: () => Promise.reject(new Error('nothing is fetched here')),
    publicUrl: () => 'http://localhost',
    logFor: () => silent,
    onFailure: (error) => expect.fail(String(error)),
  });
  await engine.start();
  return engine;
}

async function runs(engine: Engine, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const { run_id, after } = await engine.create({ agent_name: 'greet', input: [{ parts: [{ content: 'hi' }] }] });
    for await (const _ of await engine.watch(run_id, { after, until: 'settled' }));
  }
}

describe('a run that is over', () => {
  // Seen: getters of its own, or a Map that it had been in, kept each run whole until the next full collection.
  it('leaves nothing behind that only a full collection finds', async () => {
    const engine = await startEngine();
    await runs(engine, 500);
    collect();
    const count = 1_500;
    for (let n = 0; n < 10; n += 1) {
      await runs(engine, count / 10);
      collect({ type: 'minor' });
    }
    collect({ type: 'minor' });
    const before = used();
    collect();
    expect((before - used()) / count).toBeLessThan(2_500);
    await engine.stop();
  });
});
