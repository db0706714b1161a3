/** The memory that a finished run keeps, and the time of later runs. */
import type { Contestant } from '../contestant.ts';
import { requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type MeasuredInRounds } from '../work.ts';

const runs = 10_000;
const sampleSize = 500;

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const request = post('/runs', runOf('echo', 'sync', 'hello'), { connection: 'keep-alive' });
  const run = (count: number, connections = 1): Promise<string[]> =>
    requests({ port, connections, count, request, right: (answer) => answer.includes('"status":"completed"') });
  const timed = async (): Promise<{ ms: number; cpu: number }> => {
    const before = await contestant.usage();
    const begun = performance.now();
    await run(sampleSize);
    return { ms: performance.now() - begun, cpu: (await contestant.usage()).cpu - before.cpu };
  };
  // The first thousand runs warm up the compilers.
  await run(1_000);
  const early = await timed();
  const before = await contestant.usageAfterGc();
  await run(runs - 1_000 - sampleSize, 10);
  const { memory } = await contestant.usageAfterGc();
  const late = await timed();
  return {
    'KB a finished run': (memory - before.memory) / (runs - 1_000 - sampleSize) / 1000,
    'ms a run': late.ms / sampleSize,
    'time, of the first': late.ms / early.ms,
    'CPU, of the first': late.cpu / early.cpu,
  };
}

export const finishedRuns: MeasuredInRounds[] = [
  {
    name: '10,000 finished runs',
    group: 'finished',
    about: `Echo runs, sync, in a new process each round. Resident memory after a garbage collection; and ${sampleSize} runs after the 10,000th compared with ${sampleSize} after the 1,000th, when all code is compiled.`,
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
