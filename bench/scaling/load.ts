/** Measures the time of a load, and the CPU time of nodes and store. */
import type { Backend, Nodes } from './backends.ts';

export interface LoadUsage {
  /** Milliseconds. */
  readonly took: number;
  /** Microseconds of CPU time: of all nodes, and of the store's server. */
  readonly nodes: number;
  readonly store: number;
  readonly commits: number;
}

/** Measures a load. */
export async function measureLoad(backend: Backend, nodes: Nodes, load: () => Promise<unknown>): Promise<LoadUsage> {
  const [before, store] = [await nodes.usage(), await backend.meter()];
  const begun = performance.now();
  await load();
  const took = performance.now() - begun;
  const [after, storeAfter] = [await nodes.usage(), await backend.meter()];
  return {
    took,
    nodes: after.cpu - before.cpu,
    store: storeAfter - store,
    commits: after.commits - before.commits,
  };
}

/** Runs `work` with nodes, and stops them afterwards. */
export async function withNodes<T>(starting: Promise<Nodes>, work: (nodes: Nodes) => Promise<T>): Promise<T> {
  const nodes = await starting;
  try {
    return await work(nodes);
  } finally {
    await nodes.stop();
  }
}
