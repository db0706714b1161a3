import { Dice } from '../../support/dice.ts';
import { steadyPort } from '../../support/ports.ts';
import { makeProject, type Project } from '../../support/project.ts';
import { Balancer } from './balancer.ts';
import type { Faults } from './measurements.ts';
import { Node } from './node.ts';
import { agentFiles } from './orders.ts';

export interface NodesOptions {
  /** The number of nodes. */
  readonly nodes: number;
  /** Further nodes, at the end of the list, that execute no runs. Default: none. */
  readonly fronts?: number;
  /** URL of the store that all nodes share. */
  readonly store: string;
  /** The nodes' lease in milliseconds; their default, if it is undefined. */
  readonly lease?: number;
  /** Further limits, such as `passivateAfter=300`. */
  readonly limits?: readonly string[];
  readonly seed: number;
  /** The files of the agents' folder. Default: the agents of the orders. */
  readonly agents?: Record<string, string>;
}

/** Nodes with one store and the same agents, and a balancer in front of them. */
export class Nodes {
  readonly list: readonly Node[];
  readonly balancer: Balancer;
  readonly folder: string;
  readonly #remove: () => void;

  private constructor(list: readonly Node[], balancer: Balancer, { folder, remove }: Project) {
    this.folder = folder;
    this.list = list;
    this.balancer = balancer;
    this.#remove = remove;
  }

  static async open(options: NodesOptions, faults: Faults): Promise<Nodes> {
    const { nodes, fronts = 0, store, lease, limits = [], seed, agents = agentFiles } = options;
    const ports = new Set<number>();
    while (ports.size < nodes + fronts) ports.add(await steadyPort());
    const addresses = [...ports].map((port, index) => ({ name: `n${index}`, port }));
    const balancer = await Balancer.open(addresses, new Dice(seed));
    const project = makeProject(agents);
    const allLimits = ['attempts=1000000', ...limits, ...(lease === undefined ? [] : [`lease=${lease}`])];
    // The balancer's URL is the public one, so that all nodes respond with the same URLs.
    const args = ['--store', store, '--public-url', balancer.url, ...allLimits.flatMap((limit) => ['--limit', limit])];
    const { folder } = project;
    const argsOf = (index: number): string[] => (index < nodes ? args : [...args, '--no-worker']);
    const list = addresses.map(
      ({ name, port }, index) => new Node(name, { port, args: argsOf(index), folder, faults }),
    );
    return new Nodes(list, balancer, project);
  }

  get first(): Node {
    const [node] = this.list;
    if (node === undefined) throw new Error('there are no nodes');
    return node;
  }

  /** @throws Error if a node does not start */
  async start(): Promise<void> {
    await Promise.all(this.list.map((node) => node.start()));
  }

  /** Stops all nodes at the same time with SIGTERM. */
  async stop(): Promise<void> {
    await Promise.all(this.list.map((node) => node.stop()));
  }

  /** Whether the node is up, and nothing was done to it since a time. */
  calm(name: string, since: number): boolean {
    return this.list.find((node) => node.name === name)?.calm(since) ?? false;
  }

  /** Log lines of all nodes and their counts. */
  get logged(): ReadonlyMap<string, number> {
    const all = new Map<string, number>();
    for (const { logged } of this.list) {
      for (const [line, count] of logged) all.set(line, (all.get(line) ?? 0) + count);
    }
    return all;
  }

  /** Kills all nodes, and removes their files unless they are needed to find the cause of a fault. */
  async close(keepFiles: boolean): Promise<void> {
    await Promise.all(this.list.map((node) => node.kill()));
    await this.balancer.close();
    if (!keepFiles) this.#remove();
  }
}
