import { onTestFinished } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Limits } from '../../src/engine/limits.ts';
import type { Agent } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { type EngineTools, startEngine } from '../../src/testing/engine.ts';

/** A started engine without a server, which stops when the test is over. */
export async function engineOf(
  agents: readonly Agent[],
  store: Store = new MemoryStore(),
  limits: Partial<Limits> = {},
  tools: EngineTools = {},
): Promise<Engine> {
  const engine = await startEngine(agents, store, limits, tools);
  onTestFinished(() => engine.stop());
  return engine;
}
