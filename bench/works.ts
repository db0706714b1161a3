/** All workloads, in the order of the tables. */
import type { Contestant } from './contestant.ts';
import { stream } from './load/stream.ts';
import type { Figures, MeasuredInRounds, Work } from './work.ts';
import { finishedRuns } from './works/finished-runs.ts';
import { first } from './works/first.ts';
import { growth } from './works/growth.ts';
import { idle } from './works/idle.ts';
import { protocols } from './works/protocols.ts';
import { watched } from './works/readers.ts';
import { replay } from './works/replay.ts';
import { runs } from './works/runs.ts';
import { size } from './works/size.ts';
import { streams } from './works/streams.ts';

/** The time that a server takes to start, and its memory then. */
async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  await stream({ port, wire, request: wire.request(1, 0), tokens: 1 });
  const took = performance.now() - contestant.spawned;
  return { 'ms to the first answer': took, 'MB then': (await contestant.usageAfterGc()).memory / 1_000_000 };
}

const start: MeasuredInRounds[] = [
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

export const works: readonly Work[] = [
  ...streams,
  ...watched,
  ...first,
  ...runs,
  ...replay,
  ...protocols,
  ...idle,
  ...finishedRuns,
  ...growth,
  ...start,
  ...size,
];
