/** The time that a server takes to start, and its memory then. */
import type { Contestant } from '../contestant.ts';
import { stream } from '../load/stream.ts';
import type { Figures, MeasuredInRounds } from '../work.ts';

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  await stream({ port, wire, request: wire.request(1, 0), tokens: 1 });
  const took = performance.now() - contestant.spawned;
  return { 'ms to the first answer': took, 'MB then': (await contestant.usageAfterGc()).memory / 1_000_000 };
}

export const start: MeasuredInRounds[] = [
  {
    name: 'Start',
    group: 'start',
    about: 'Time from spawning the process until a stream of one token is answered, and resident memory then.',
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
