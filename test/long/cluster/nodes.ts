import { Dice } from '../../support/dice.ts';
import { steadyPort } from '../../support/ports.ts';
import { makeProject } from '../../support/project.ts';
import { agentFiles } from './agents.ts';
import { Balancer } from './balancer.ts';
import type { Faults } from './faults.ts';
import { Node } from './node.ts';

export interface NodesOptions {
  /** How many. */
  readonly nodes: number;
  /** Of the store that all of them share. */
  readonly store: string;
  /** Milliseconds after which a silent node's runs are another's; undefined where a node has none beside it. */
  readonly lease?: number;
  readonly seed: number;
}

/** Some nodes with one store and the same agents, and the balancer in front of them. */
export class Nodes {
  readonly list: readonly Node[];
  readonly balancer: Balancer;
  readonly #remove: () => void;

  private constructor(list: readonly Node[], balancer: Balancer, remove: () => void) {
    this.list = list;
    this.balancer = balancer;
    this.#remove = remove;
  }

  static async open({ nodes, store, lease, seed }: NodesOptions, faults: Faults): Promise<Nodes> {
    const ports = new Set<number>();
    while (ports.size < nodes) ports.add(await steadyPort());
    const addresses = [...ports].map((port, index) => ({ name: `n${index}`, port }));
    const balancer = await Balancer.open(addresses, new Dice(seed));
    const { folder, remove } = makeProject(agentFiles);
    const limits = ['attempts=1000000', 'passivateAfter=300', ...(lease === undefined ? [] : [`lease=${lease}`])];
    // What is behind the balancer says that it is the balancer, so that what it says is the same on every node.
    const args = ['--store', store, '--public-url', balancer.url, ...limits.flatMap((limit) => ['--limit', limit])];
    const list = addresses.map(({ name, port }) => new Node(name, { port, args, folder, faults }));
    return new Nodes(list, balancer, remove);
  }

  /** @throws Error where one does not come up */
  async start(): Promise<void> {
    await Promise.all(this.list.map((node) => node.start()));
  }

  /** In good order, all at once. */
  async stop(): Promise<void> {
    await Promise.all(this.list.map((node) => node.stop()));
  }

  /** Whether nothing was done to the node of that name since a time. */
  calm(name: string, since: number): boolean {
    return this.list.find((node) => node.name === name)?.calm(since) ?? false;
  }

  /** What they logged, and how often. */
  get logged(): ReadonlyMap<string, number> {
    const all = new Map<string, number>();
    for (const { logged } of this.list) {
      for (const [line, count] of logged) all.set(line, (all.get(line) ?? 0) + count);
    }
    return all;
  }

  /** Ends whatever is left. */
  async close(): Promise<void> {
    await Promise.all(this.list.map((node) => node.kill()));
    await this.balancer.close();
    this.#remove();
  }
}
