/** Short runs a second, and their cost. */
import { requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, type MeasuredOnce, median } from '../work.ts';
import type { Backend, Nodes } from './backends.ts';
import { measureLoad, withNodes } from './load.ts';
import type { Scale } from './scale.ts';

const connections = 24;
const request = post('/runs', runOf('echo', 'sync', 'hello'), { connection: 'keep-alive' });
const right = (answer: string): boolean => answer.startsWith('HTTP/1.1 200') && answer.includes('"content":"hello"');

const columns = [
  { name: 'runs/s', digits: 0 },
  { name: 'nodes’ CPU-µs a run', digits: 0 },
  { name: 'store’s CPU-µs a run', digits: 0 },
  { name: 'runs a commit', digits: 2 },
];

async function round(backend: Backend, nodes: Nodes, runs: number): Promise<Figures> {
  const ports = nodes.all.map(({ port }) => port);
  const each = { connections: connections / ports.length, count: runs / ports.length, request, right };
  const {
    took,
    nodes: cpu,
    store,
    commits,
  } = await measureLoad(backend, nodes, () => Promise.all(ports.map((port) => requests({ port, ...each }))));
  return {
    'runs/s': (1000 * runs) / took,
    'nodes’ CPU-µs a run': cpu / runs,
    'store’s CPU-µs a run': store / runs,
    'runs a commit': runs / commits,
  };
}

/** Measures servers in turns, so that what the machine does meanwhile befalls all alike. */
async function measure(backend: Backend, servers: readonly Nodes[], { rounds, runs }: Scale): Promise<Figures[]> {
  for (const nodes of servers) await round(backend, nodes, runs);
  const all = servers.map((): Figures[] => []);
  for (let n = 0; n < rounds; n += 1) {
    for (const [at, nodes] of servers.entries()) all[at]?.push(await round(backend, nodes, runs));
  }
  return all.map((one) => Object.fromEntries(columns.map(({ name }) => [name, medianOf(one, name)])));
}

const medianOf = (rounds: readonly Figures[], column: string): number =>
  median(rounds.map((figures) => figures[column] ?? Number.NaN));

/** One node in turns with the other server on this database, where there is one. */
async function alone(backend: Backend, scale: Scale): Promise<[string, Figures][]> {
  const peer = await backend.peer?.().catch((error: Error) => {
    process.stderr.write(`a server to compare with is left out: ${error.message}\n`);
    return undefined;
  });
  return withNodes(backend.nodes(1), async (nodes) => {
    const [own = {}, others] = await measure(backend, peer === undefined ? [nodes] : [nodes, peer.nodes], scale);
    const rows: [string, Figures][] = [[`${backend.name}, 1 node`, own]];
    if (peer !== undefined && others !== undefined) rows.push([`${backend.name}, ${peer.name}, 1 process`, others]);
    return rows;
  }).finally(() => peer?.nodes.stop());
}

export const runsOf = (backends: readonly Backend[], scale: Scale): MeasuredOnce => ({
  name: 'Short sync runs',
  group: 'runs',
  about: `Sync echo runs on ${connections} kept connections, distributed among the nodes. DBOS answers the same request with a workflow of one step, in turns with one node.`,
  columns,
  find: async () => {
    const rows = new Map<string, Figures>();
    for (const backend of backends) {
      for (const [name, figures] of await alone(backend, scale)) rows.set(name, figures);
      for (const count of [2, 3]) {
        const [found = {}] = await withNodes(backend.nodes(count), (nodes) => measure(backend, [nodes], scale));
        rows.set(`${backend.name}, ${count} nodes`, found);
      }
    }
    return rows;
  },
});
