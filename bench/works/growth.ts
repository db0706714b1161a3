/** Whether a token costs more in a long run than in a short one. */
import type { Contestant } from '../contestant.ts';
import { stream } from '../load/stream.ts';
import { type Figures, isNoPeer, type MeasuredInRounds } from '../work.ts';

const total = 30_000;

/** CPU time of a token, for the same number of tokens in runs of a length, one after the other. */
async function cpuOf(contestant: Contestant, tokens: number): Promise<number> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  const before = await contestant.usage();
  for (let n = 0; n < total / tokens; n += 1) await stream({ port, wire, request: wire.request(tokens, 0), tokens });
  return ((await contestant.usage()).cpu - before.cpu) / total;
}

async function measure(contestant: Contestant): Promise<Figures> {
  const short = await cpuOf(contestant, 300);
  const middle = await cpuOf(contestant, 3_000);
  const long = await cpuOf(contestant, 30_000);
  return {
    'at 300': short,
    'at 3,000': middle,
    'at 30,000': long,
    '30,000 : 300': long / short,
    '30,000 : 3,000': long / middle,
  };
}

export const growth: MeasuredInRounds[] = [
  {
    name: 'CPU a token in longer runs',
    group: 'growth',
    about:
      'CPU-µs a token, for 30,000 tokens in runs of 300, of 3,000, and in one. In a short run, each token has a larger share of the cost of its start, so the second ratio shows growth better.',
    columns: [
      { name: 'at 30,000', digits: 2 },
      { name: 'at 300', digits: 2 },
      { name: 'at 3,000', digits: 2 },
      { name: '30,000 : 300', digits: 2 },
      { name: '30,000 : 3,000', digits: 2 },
    ],
    base: 'bare',
    takes: isNoPeer,
    measure,
  },
];
