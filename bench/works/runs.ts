/** Runs in sync and async mode. */
import { setTimeout as after } from 'node:timers/promises';
import type { Contestant } from '../contestant.ts';
import { bodyOf, requests } from '../load/requests.ts';
import { post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type MeasuredInRounds } from '../work.ts';

type Mode = 'sync' | 'async';

const answered: Record<Mode, (answer: string) => boolean> = {
  sync: (answer) => answer.startsWith('HTTP/1.1 200') && answer.includes('"content":"hello"'),
  async: (answer) => answer.startsWith('HTTP/1.1 202') && answer.includes('"status":"created"'),
};

/** Runs for each millisecond of a turn. */
const runsPerMillisecond = 4;

interface Runs {
  readonly mode: Mode;
  readonly connections: number;
}

async function measure({ mode, connections }: Runs, contestant: Contestant, turn: number): Promise<Figures> {
  const { port, entry } = contestant;
  const rounded = (runs: number): number => connections * Math.ceil(runs / connections);
  const count = rounded(runsPerMillisecond * turn);
  const right = isRivulet(entry) ? answered[mode] : answered.sync;
  const request = post('/runs', runOf('echo', mode, 'hello'), { connection: 'keep-alive' });
  // During the turns of the others, the machine has swapped out this contestant's memory.
  await requests({ port, connections, count: rounded(count / 10), request, right });
  const before = await contestant.usage();
  const begun = performance.now();
  const last = await requests({ port, connections, count, request, right });
  // An async run is done when it is completed, not when the request is answered.
  if (mode === 'async' && isRivulet(entry))
    await Promise.all(last.map((answer) => completed(port, JSON.parse(bodyOf(answer)).run_id)));
  const took = performance.now() - begun;
  const { cpu } = await contestant.usage();
  return { 'runs/s': count / (took / 1000), 'CPU-µs a run': (cpu - before.cpu) / count };
}

async function completed(port: number, run_id: string): Promise<void> {
  for (;;) {
    const { status } = await (await fetch(`http://127.0.0.1:${port}/runs/${run_id}`)).json();
    if (status === 'completed') return;
    if (status === 'failed') throw new Error(`run ${run_id} failed`);
    await after(1);
  }
}

export const runs: MeasuredInRounds[] = (['sync', 'async'] as const).flatMap((mode) =>
  [1, 32].map((connections) => ({
    name: `${mode === 'sync' ? 'Sync' : 'Async'} runs, ${connections === 1 ? '1 connection' : `${connections} connections`}`,
    group: 'runs',
    about:
      mode === 'sync'
        ? 'Echo runs, one after the other on each connection, each answer checked. Fastify echoes the body, with the same shape validated.'
        : 'Each connection starts the next run when the last is answered; the time ends when the last runs are completed. Fastify echoes, as above.',
    columns: [
      { name: 'runs/s', digits: 0 },
      { name: 'CPU-µs a run', digits: 0 },
    ],
    base: 'fastify',
    takes: (entry) => isRivulet(entry) || entry.id === 'fastify',
    measure: (contestant, turn) => measure({ mode, connections }, contestant, turn),
  })),
);
