/** How long a server takes to start, and what it weighs then. */
import type { Contestant } from '../contestant.ts';
import { stream } from '../load/stream.ts';
import type { Figures, Measured } from '../work.ts';

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  await stream({ port, wire, request: wire.request(1, 0), tokens: 1 });
  const took = performance.now() - contestant.spawned;
  return { 'ms to the first answer': took, 'MB then': (await contestant.settled()).memory / 1_000_000 };
}

export const start: Measured[] = [
  {
    name: 'Start',
    group: 'start',
    about: 'From spawning the process until a stream of one token has been answered, and resident memory then.',
    columns: [
      { name: 'ms to the first answer', digits: 0 },
      { name: 'MB then', digits: 0 },
    ],
    base: 'bare',
    fresh: true,
    takes: () => true,
    measure,
  },
];
