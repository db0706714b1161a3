import type { Store } from '../../src/core/ports/store.ts';
import { Registry } from '../../src/engine/agents/registry.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Agent } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A started engine without a server. The caller stops it. */
export async function engineOf(agents: readonly Agent[], store: Store = new MemoryStore()): Promise<Engine> {
  const engine = new Engine({
    registry: new Registry(agents.map((agent) => ({ agent, source: 'the test' }))),
    store,
    fetchResource: () => Promise.reject(new Error('not asked')),
    publicUrl: () => 'http://127.0.0.1',
    logFor: () => silent,
    onFailure: () => {},
    limits: { shutdownGrace: 0 },
  });
  await engine.start();
  return engine;
}
