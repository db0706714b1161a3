/** Streams at full speed and at a model's pace. */
import type { Contestant } from '../contestant.ts';
import { type Seen, stream } from '../load/stream.ts';
import { type Figures, type MeasuredInRounds, median } from '../work.ts';

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

/** Runs all streams once. */
function runAll({ streams, tokens, pace }: Streams, { port, entry: { wire } }: Contestant): Promise<Seen[]> {
  const request = wire.request(tokens, pace);
  return Promise.all(Array.from({ length: streams }, () => stream({ port, wire, request, tokens })));
}

/**
 * Short streams at a fast pace. At their own, 400 streams are 200 requests a second, and the compilers would need minutes for
 * what begins a run.
 */
const warm = (one: Streams, contestant: Contestant): Promise<unknown> =>
  runAll({ ...one, tokens: 10, pace: 1 }, contestant);

async function measure(one: Streams, contestant: Contestant, turn: number): Promise<Figures> {
  const { streams, tokens, pace } = one;
  const took: number[] = [];
  const firsts: number[] = [];
  const once = async (): Promise<number> => {
    const begun = performance.now();
    firsts.push(...(await runAll(one, contestant)).map(({ first }) => first));
    return performance.now() - begun;
  };
  // During the turns of the others, the machine has swapped out this contestant's memory.
  const cold = await once();
  firsts.length = 0;
  const before = await contestant.usage();
  const load = process.cpuUsage();
  const until = performance.now() + (pace === 0 ? turn : 0);
  do took.push(await once());
  while (performance.now() < until);
  const { user, system } = process.cpuUsage(load);
  const after = await contestant.usage();
  const total = streams * tokens * took.length;
  const ms = took.reduce((sum, one) => sum + one, 0);
  return {
    'events/s': total / (ms / 1000),
    'CPU-µs a token': (after.cpu - before.cpu) / total,
    ms: median(took),
    'ms, cold': cold,
    'first token, ms': median(firsts),
    'load busy, %': (user + system) / (ms * 10),
  };
}

export const streams: MeasuredInRounds[] = works.map((one) => ({
  name: one.name,
  group: 'streams',
  about:
    one.pace > 0
      ? 'A token every 20 ms in each stream. The pace determines the events a second; the result is the CPU time. The first time of each turn does not count, because it comes after minutes of idleness.'
      : 'Ten tokens a turn of the event loop in each stream, all requests sent at once. A turn repeats them, after one time that counts only as cold, because it comes after minutes of idleness. Where the load generator is always busy, the server could do more.',
  columns: [
    ...(one.pace > 0 ? [] : [{ name: 'events/s', digits: 0 }]),
    { name: 'CPU-µs a token', digits: 2 },
    { name: 'ms', digits: 1 },
    ...(one.pace > 0 ? [] : [{ name: 'ms, cold', digits: 1 }]),
    { name: 'first token, ms', digits: 2 },
    { name: 'load busy, %', digits: 0, ofLoad: true },
  ],
  base: one.pace > 0 ? 'bare' : 'fastify',
  takes: ({ most }) => one.pace === 0 || one.streams <= (most ?? one.streams),
  measure: (contestant, turn) => measure(one, contestant, turn),
  ...(one.pace > 0 && { warm: (contestant: Contestant) => warm(one, contestant) }),
}));
