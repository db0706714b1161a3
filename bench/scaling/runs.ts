/** Runs a second through the queue. */
import { requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, type Found, median } from '../work.ts';
import type { Ground, Nodes } from './ground.ts';
import { used, withNodes } from './load.ts';
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

async function round(ground: Ground, nodes: Nodes, runs: number): Promise<Figures> {
  const ports = nodes.all.map(({ port }) => port);
  const each = { connections: connections / ports.length, count: runs / ports.length, request, right };
  const {
    took,
    nodes: cpu,
    store,
    commits,
  } = await used(ground, nodes, () => Promise.all(ports.map((port) => requests({ port, ...each }))));
  return {
    'runs/s': (1000 * runs) / took,
    'nodes’ CPU-µs a run': cpu / runs,
    'store’s CPU-µs a run': store / runs,
    'runs a commit': runs / commits,
  };
}

async function measure(ground: Ground, nodes: Nodes, { rounds, runs }: Scale): Promise<Figures> {
  await round(ground, nodes, runs);
  const all: Figures[] = [];
  for (let n = 0; n < rounds; n += 1) all.push(await round(ground, nodes, runs));
  return Object.fromEntries(columns.map(({ name }) => [name, median(all.map((one) => one[name] ?? Number.NaN))]));
}

export const runsOf = (grounds: readonly Ground[], scale: Scale): Found => ({
  name: 'Runs through the queue',
  group: 'runs',
  about: `Sync echo runs on ${connections} connections that are kept, spread over the nodes; each is written down, queued, taken by any of them, executed and answered.`,
  columns,
  find: async () => {
    const rows = new Map<string, Figures>();
    for (const ground of grounds) {
      for (const count of [1, 2, 3]) {
        const found = await withNodes(ground.nodes(count), (nodes) => measure(ground, nodes, scale));
        rows.set(`${ground.name}, ${count} ${count === 1 ? 'node' : 'nodes'}`, found);
      }
    }
    return rows;
  },
});
