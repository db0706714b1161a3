/** What is measured at a load: time, and what the processes used for it. */
import type { Ground, Nodes } from './ground.ts';

export interface Used {
  /** Milliseconds. */
  readonly took: number;
  /** Microseconds of processor time: of all nodes, and of the store's server. */
  readonly nodes: number;
  readonly store: number;
  readonly commits: number;
}

/** What a load takes. */
export async function used(ground: Ground, nodes: Nodes, load: () => Promise<unknown>): Promise<Used> {
  const [before, store] = [await nodes.usage(), await ground.meter()];
  const begun = performance.now();
  await load();
  const took = performance.now() - begun;
  const [after, storeAfter] = [await nodes.usage(), await ground.meter()];
  return {
    took,
    nodes: after.cpu - before.cpu,
    store: storeAfter - store,
    commits: after.commits - before.commits,
  };
}

/** Does something with nodes that are there as long as it takes. */
export async function withNodes<T>(starting: Promise<Nodes>, work: (nodes: Nodes) => Promise<T>): Promise<T> {
  const nodes = await starting;
  try {
    return await work(nodes);
  } finally {
    await nodes.stop();
  }
}
