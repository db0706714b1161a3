/** What a stream that waits costs in memory. */
import type { Contestant } from '../contestant.ts';
import { hold } from '../load/held.ts';
import { type Figures, isAtHome, type Measured } from '../work.ts';

const count = 10_000;

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  // A few first: what is compiled and allocated once is not a stream's.
  const warm = await hold(100, { port, wire, request: wire.request(2, 'hold'), tokens: 2 });
  contestant.release();
  await warm.ended;
  const before = await contestant.settled();
  const { ended } = await hold(count, { port, wire, request: wire.request(2, 'hold'), tokens: 2 });
  const { memory } = await contestant.settled();
  const begun = performance.now();
  contestant.release();
  await ended;
  return {
    'KB a stream': (memory - before.memory) / count / 1000,
    'next event to all, ms': performance.now() - begun,
  };
}

export const idle: Measured[] = [
  {
    name: '10,000 idle streams',
    group: 'idle',
    about: `${count.toLocaleString('en')} streams that have had a token and wait; resident memory after collecting garbage, in a new process each round. Then all of them get their next token, and end.`,
    columns: [
      { name: 'KB a stream', digits: 1 },
      { name: 'next event to all, ms', digits: 0 },
    ],
    base: 'bare',
    fresh: true,
    takes: isAtHome,
    measure,
  },
];
