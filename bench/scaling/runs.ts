/** Runs a second through the queue. */
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

async function measure(backend: Backend, nodes: Nodes, { rounds, runs }: Scale): Promise<Figures> {
  await round(backend, nodes, runs);
  const all: Figures[] = [];
  for (let n = 0; n < rounds; n += 1) all.push(await round(backend, nodes, runs));
  return Object.fromEntries(columns.map(({ name }) => [name, median(all.map((one) => one[name] ?? Number.NaN))]));
}

export const runsOf = (backends: readonly Backend[], scale: Scale): MeasuredOnce => ({
  name: 'Runs through the queue',
  group: 'runs',
  about: `Sync echo runs on ${connections} kept connections, distributed among the nodes; each run is stored, queued, taken by one of the nodes, executed and answered.`,
  columns,
  find: async () => {
    const rows = new Map<string, Figures>();
    for (const backend of backends) {
      for (const count of [1, 2, 3]) {
        const found = await withNodes(backend.nodes(count), (nodes) => measure(backend, nodes, scale));
        rows.set(`${backend.name}, ${count} ${count === 1 ? 'node' : 'nodes'}`, found);
      }
    }
    return rows;
  },
});
