import { of } from 'rxjs';
import { expect, it } from 'vitest';
import { defineAgent } from '../../src/core/agent.ts';
import type { Principal } from '../../src/core/principal.ts';
import { Registry } from '../../src/engine/agents/registry.ts';
import type { Place } from '../../src/engine/dispatch/dispatcher.ts';
import { LocalDispatcher } from '../../src/engine/dispatch/local-dispatcher.ts';
import { Engine } from '../../src/engine/engine.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

/** Counts the places that are kept for runs which have not begun. */
class CountingDispatcher extends LocalDispatcher {
  kept = 0;

  override reserve(): Place {
    this.kept += 1;
    let isKept = true;
    const release = (): void => {
      if (isKept) this.kept -= 1;
      isKept = false;
    };
    const { begin } = super.reserve();
    return {
      begin: (run_id) => {
        release();
        begin(run_id);
      },
      drop: release,
    };
  }
}

it('a run that cannot be made gives its place back', async () => {
  const dispatcher = new CountingDispatcher();
  const agent = defineAgent({ name: 'greet', description: 'Says hello.' }, () => of('hello'));
  const engine = new Engine({
    registry: new Registry([{ agent, source: 'the test' }]),
    store: new MemoryStore(),
    dispatcher,
    fetchResource: () => Promise.reject(new Error('nothing is fetched here')),
    publicUrl: () => 'http://localhost',
    logFor: () => ({ debug() {}, info() {}, warn() {}, error() {} }),
    onFailure: (error) => {
      throw error;
    },
  });
  await engine.start();
  // JSON has no BigInt, so this principal cannot be stored with its run.
  const principal: Principal = { id: 'ada', kind: 'custom', scopes: [], claims: { level: 1n } };
  const request = { agent_name: 'greet', input: [{ parts: [{ content: 'hi' }] }] };
  await expect(engine.as(principal).create(request)).rejects.toThrow('BigInt');
  expect(dispatcher.kept).toBe(0);
  await engine.create(request);
  expect(dispatcher.kept).toBe(0);
  await engine.stop();
});
