/** Events a second through a store, and their cost. */
import { stream } from '../load/stream.ts';
import { acp } from '../wires.ts';
import { type Figures, type MeasuredOnce, median } from '../work.ts';
import type { Backend, Nodes } from './backends.ts';
import { measureLoad, withNodes } from './load.ts';
import type { Scale } from './scale.ts';

interface Load {
  readonly streams: number;
  readonly tokens: number;
  /** Milliseconds between the tokens of a stream; 0 for no delay. */
  readonly pace: number;
}

const columns = [
  { name: 'events/s', digits: 0 },
  { name: 'nodes’ CPU-µs an event', digits: 1 },
  { name: 'store’s CPU-µs an event', digits: 1 },
  { name: 'store’s CPU-µs a commit', digits: 0 },
  { name: 'events a commit', digits: 1 },
];

/** Distributes the streams evenly among the ports. */
async function measure(backend: Backend, nodes: Nodes, ports: readonly number[], load: Load): Promise<Figures> {
  const { streams, tokens, pace } = load;
  const request = acp.request(tokens, pace);
  const one = (_: unknown, index: number): Promise<unknown> =>
    stream({ port: ports[index % ports.length] ?? 0, wire: acp, request, tokens });
  const {
    took,
    nodes: cpu,
    store,
    commits,
  } = await measureLoad(backend, nodes, () => Promise.all(Array.from({ length: streams }, one)));
  const events = streams * tokens;
  return {
    'events/s': (1000 * events) / took,
    'nodes’ CPU-µs an event': cpu / events,
    'store’s CPU-µs an event': store / events,
    'store’s CPU-µs a commit': store / commits,
    'events a commit': events / commits,
  };
}

async function rounds(count: number, round: () => Promise<Figures>): Promise<Figures> {
  // Warm-up for the compilers.
  await round();
  const all: Figures[] = [];
  for (let n = 0; n < count; n += 1) all.push(await round());
  return Object.fromEntries(columns.map(({ name }) => [name, median(all.map((one) => one[name] ?? Number.NaN))]));
}

async function rowsOf(backends: readonly Backend[], load: Load, times: number): Promise<Map<string, Figures>> {
  const rows = new Map<string, Figures>();
  for (const backend of backends) {
    for (const [label, executing, serving] of [
      ['one node', 1, 0],
      ['one serves, one executes', 1, 1],
      ['one serves, two execute', 2, 1],
    ] as const) {
      const found = await withNodes(backend.nodes(executing, serving), (nodes) => {
        const ports = (serving > 0 ? nodes.serving : nodes.executing).map(({ port }) => port);
        return rounds(times, () => measure(backend, nodes, ports, load));
      });
      rows.set(`${backend.name}, ${label}`, found);
    }
  }
  return rows;
}

export const streamsOf = (backends: readonly Backend[], scale: Scale): MeasuredOnce[] => {
  const flood = { streams: 40, tokens: scale.tokens, pace: 0 };
  const paced = { streams: 100, tokens: Math.ceil(scale.tokens / 10), pace: 20 };
  return [
    {
      name: 'Events, as fast as they go',
      group: 'streams',
      about: `${flood.streams} streams of ${flood.tokens} tokens, ten tokens a turn of the event loop. Nodes, store and load share the machine, so CPU times mean more than rates.`,
      columns,
      find: () => rowsOf(backends, flood, scale.rounds),
    },
    {
      name: 'Events at a model’s pace',
      group: 'streams',
      about: `${paced.streams} streams of ${paced.tokens} tokens at ${1000 / paced.pace} tokens/s each, ${(paced.streams * 1000) / paced.pace} events/s in all. Shows the cost of commits with few events.`,
      columns,
      find: () => rowsOf(backends, paced, scale.rounds),
    },
  ];
};
