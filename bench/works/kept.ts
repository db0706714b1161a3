/** What stays of a run when it is over: memory, and time for those after it. */
import type { Contestant } from '../contestant.ts';
import { requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type Measured } from '../work.ts';

const runs = 10_000;
const some = 500;

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const request = post('/runs', runOf('echo', 'sync', 'hello'), { connection: 'keep-alive' });
  const run = (count: number, connections = 1): Promise<string[]> =>
    requests({ port, connections, count, request, right: (answer) => answer.includes('"status":"completed"') });
  const timed = async (): Promise<{ ms: number; cpu: number }> => {
    const before = await contestant.usage();
    const begun = performance.now();
    await run(some);
    return { ms: performance.now() - begun, cpu: (await contestant.usage()).cpu - before.cpu };
  };
  // The first thousand are the compiler's.
  await run(1_000);
  const early = await timed();
  const before = await contestant.settled();
  await run(runs - 1_000 - some, 10);
  const { memory } = await contestant.settled();
  const late = await timed();
  return {
    'KB a finished run': (memory - before.memory) / (runs - 1_000 - some) / 1000,
    'ms a run': late.ms / some,
    'time, of the first': late.ms / early.ms,
    'CPU, of the first': late.cpu / early.cpu,
  };
}

export const kept: Measured[] = [
  {
    name: '10,000 finished runs',
    group: 'kept',
    about: `Echo runs, sync, in a new process each round. Resident memory after collecting garbage; and ${some} runs after the 10,000th beside ${some} after the 1,000th, when all is compiled.`,
    columns: [
      { name: 'KB a finished run', digits: 2 },
      { name: 'ms a run', digits: 3 },
      { name: 'time, of the first', digits: 2 },
      { name: 'CPU, of the first', digits: 2 },
    ],
    fresh: true,
    takes: isRivulet,
    measure,
  },
];
