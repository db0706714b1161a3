/** The memory that a finished run keeps, and the time of later runs. */
import type { Contestant } from '../contestant.ts';
import { requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type MeasuredInRounds } from '../work.ts';

const runs = 10_000;
/** After so many runs all code is compiled: one takes a fifth of the time of the 1,000th. */
const warmUp = 6_000;
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
    return { ms: (performance.now() - begun) / sampleSize, cpu: (await contestant.usage()).cpu - before.cpu };
  };
  await run(1_000);
  const before = await contestant.usageAfterGc();
  await run(warmUp, 10);
  const early = await timed();
  await run(runs, 10);
  const late = await timed();
  const { memory } = await contestant.usageAfterGc();
  const afterGc = await timed();
  return {
    'KB a finished run': (memory - before.memory) / (warmUp + runs + 2 * sampleSize) / 1000,
    'ms a run': late.ms,
    'time, of the first': late.ms / early.ms,
    'CPU, of the first': late.cpu / early.cpu,
    'ms, after a collection': afterGc.ms,
  };
}

export const finishedRuns: MeasuredInRounds[] = [
  {
    name: '10,000 finished runs',
    group: 'finished',
    about: `Echo runs, sync, in a new process each round. ${sampleSize} runs with one connection before and after ${runs.toLocaleString('en')} others, when all code is compiled; then resident memory after a forced garbage collection, and ${sampleSize} more runs. A forced collection discards the compiled code, which these runs compile again, as does one by which V8 returns memory when a process has been idle; collections of a process at work keep it (bench/collections.js shows all three).`,
    columns: [
      { name: 'KB a finished run', digits: 2 },
      { name: 'ms a run', digits: 3 },
      { name: 'time, of the first', digits: 2 },
      { name: 'CPU, of the first', digits: 2 },
      { name: 'ms, after a collection', digits: 3 },
    ],
    fresh: true,
    takes: isRivulet,
    measure,
  },
];
