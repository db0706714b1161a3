/** Streams at full speed and at a model's pace. */
import type { Contestant } from '../contestant.ts';
import { stream } from '../load/stream.ts';
import { type Figures, type Measured, median } from '../work.ts';

interface Streams {
  readonly name: string;
  readonly streams: number;
  readonly tokens: number;
  /** Milliseconds between tokens; 0 for as fast as they go. */
  readonly pace: number;
}

const works: Streams[] = [
  { name: '1 stream of 1,000 tokens', streams: 1, tokens: 1_000, pace: 0 },
  { name: '1 stream of 3,000 tokens', streams: 1, tokens: 3_000, pace: 0 },
  { name: '1 stream of 10,000 tokens', streams: 1, tokens: 10_000, pace: 0 },
  { name: '50 streams of 1,000 tokens', streams: 50, tokens: 1_000, pace: 0 },
  { name: '500 streams of 200 tokens', streams: 500, tokens: 200, pace: 0 },
  { name: '50 streams at 50 tokens/s', streams: 50, tokens: 100, pace: 20 },
  { name: '400 streams at 50 tokens/s', streams: 400, tokens: 100, pace: 20 },
];

async function measure({ streams, tokens, pace }: Streams, contestant: Contestant): Promise<Figures> {
  const { port, entry } = contestant;
  const { wire } = entry;
  const request = wire.request(tokens, pace);
  const before = await contestant.usage();
  const load = process.cpuUsage();
  const begun = performance.now();
  const seen = await Promise.all(Array.from({ length: streams }, () => stream({ port, wire, request, tokens })));
  const took = performance.now() - begun;
  const { user, system } = process.cpuUsage(load);
  const after = await contestant.usage();
  const total = streams * tokens;
  return {
    'events/s': total / (took / 1000),
    'CPU-µs a token': (after.cpu - before.cpu) / total,
    ms: took,
    'first token, ms': median(seen.map(({ first }) => first)),
    'load busy, %': (user + system) / (took * 10),
  };
}

export const streams: Measured[] = works.map((one) => ({
  name: one.name,
  group: 'streams',
  about:
    one.pace > 0
      ? 'A token every 20 ms in each stream. Events a second are given by the pace; what counts is CPU time.'
      : 'Ten tokens a turn of the event loop in each stream, all requests sent at once. Where the load is busy all the time, the server could do more.',
  columns: [
    ...(one.pace > 0 ? [] : [{ name: 'events/s', digits: 0 }]),
    { name: 'CPU-µs a token', digits: 2 },
    { name: 'ms', digits: 1 },
    { name: 'first token, ms', digits: 2 },
    { name: 'load busy, %', digits: 0 },
  ],
  base: one.pace > 0 ? 'bare' : 'fastify',
  takes: ({ most }) => one.pace === 0 || one.streams <= (most ?? one.streams),
  measure: (contestant) => measure(one, contestant),
}));
