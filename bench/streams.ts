/**
 * Streams side by side: `npm run bench:streams`. Each line is one contestant at one piece of work; contestants
 * alternate within a round, rounds repeat, medians are printed. Compare ratios: the machine's speed drifts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Contestant, entries } from './contestant.ts';
import { stream } from './load.ts';

interface Work {
  readonly name: string;
  readonly streams: number;
  readonly tokens: number;
  /** Milliseconds between tokens; 0 for as fast as they go. */
  readonly every: number;
}

const works: Work[] = [
  { name: '1 stream of 1,000', streams: 1, tokens: 1_000, every: 0 },
  { name: '1 stream of 10,000', streams: 1, tokens: 10_000, every: 0 },
  { name: '50 streams of 1,000', streams: 50, tokens: 1_000, every: 0 },
  { name: '500 streams of 200', streams: 500, tokens: 200, every: 0 },
  { name: '50 streams at 50 tokens/s', streams: 50, tokens: 100, every: 20 },
  { name: '400 streams at 50 tokens/s', streams: 400, tokens: 100, every: 20 },
];

interface Figure {
  readonly perSecond: number;
  readonly cpu: number;
  readonly first: number;
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function measure(contestant: Contestant, { streams, tokens, every }: Work): Promise<Figure> {
  const { port, entry } = contestant;
  const request = entry.request(tokens, every);
  const before = await contestant.usage();
  const begun = performance.now();
  const seen = await Promise.all(Array.from({ length: streams }, () => stream({ port, request, tokens })));
  const seconds = (performance.now() - begun) / 1000;
  const after = await contestant.usage();
  const total = streams * tokens;
  return {
    perSecond: total / seconds,
    cpu: (after.cpu - before.cpu) / total,
    first: median(seen.map(({ first }) => first)),
  };
}

const rounds = Number(process.argv[2] ?? 5);
const only = process.argv[3];
const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'));
const contestants: Contestant[] = [];
for (const entry of entries(folder)) contestants.push(await Contestant.start(entry));
for (const work of works.filter(({ name }) => only === undefined || name.includes(only))) {
  const figures = new Map(contestants.map((one) => [one, [] as Figure[]]));
  // One round more, for the compilers.
  for (let round = 0; round <= rounds; round += 1) {
    for (const [contestant, list] of figures) {
      const figure = await measure(contestant, work);
      if (round > 0) list.push(figure);
    }
  }
  console.log(`\n${work.name}`);
  const loop = median((figures.get(contestants[2] as Contestant) ?? []).map(({ perSecond }) => perSecond));
  for (const [{ entry }, list] of figures) {
    const perSecond = median(list.map((one) => one.perSecond));
    const cpu = median(list.map((one) => one.cpu));
    const first = median(list.map((one) => one.first));
    const columns = [
      entry.name.padEnd(28),
      `${Math.round(perSecond / 1000)}k/s`.padStart(8),
      `${(perSecond / loop).toFixed(2)}×`.padStart(7),
      `${cpu.toFixed(2)} CPU-µs a token`.padStart(22),
      `first after ${first.toFixed(2)} ms`.padStart(24),
    ];
    console.log(columns.join(''));
  }
}
await Promise.all(contestants.map((one) => one.stop()));
rmSync(folder, { recursive: true });
