/** The memory of a waiting stream. */
import type { Contestant } from '../contestant.ts';
import { hold } from '../load/held-streams.ts';
import { type Figures, isNoPeer, type MeasuredInRounds } from '../work.ts';

const count = 10_000;

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  // Warm-up: what is compiled and allocated once does not belong to a stream.
  const warm = await hold(100, { port, wire, request: wire.request(2, 'hold'), tokens: 2 });
  contestant.release();
  await warm.ended;
  const before = await contestant.usageAfterGc();
  const { ended } = await hold(count, { port, wire, request: wire.request(2, 'hold'), tokens: 2 });
  const after = await contestant.usageAfterGc();
  const begun = performance.now();
  contestant.release();
  await ended;
  return {
    'KB a stream': (after.memory - before.memory) / count / 1000,
    'of objects': (after.heap - before.heap) / count / 1000,
    'next event to all, ms': performance.now() - begun,
  };
}

export const idle: MeasuredInRounds[] = [
  {
    name: '10,000 idle streams',
    group: 'idle',
    about: `${count.toLocaleString('en')} streams that have had one token and wait; resident memory after a garbage collection, in a new process each round. Equal processes differ by up to 2 KB a stream in how densely V8 fills its pages; the part that is objects does not. Then each gets its next token, and ends.`,
    columns: [
      { name: 'KB a stream', digits: 1 },
      { name: 'of objects', digits: 2 },
      { name: 'next event to all, ms', digits: 0 },
    ],
    base: 'bare',
    fresh: true,
    takes: isNoPeer,
    measure,
  },
];
