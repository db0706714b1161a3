/** Time to the first token. */
import { setTimeout as after } from 'node:timers/promises';
import type { Contestant } from '../contestant.ts';
import { stream } from '../load/stream.ts';
import { type Figures, type MeasuredInRounds, quantile } from '../work.ts';

/** Requests of a turn of a second. */
const count = 300;
const tokens = 10;

/** The mean shows what a server does now and then, such as a checkpoint, which the median does not. */
const figuresOf = (firsts: readonly number[]): Figures => ({
  'p50, ms': quantile(firsts, 0.5),
  'p99, ms': quantile(firsts, 0.99),
  'mean, ms': firsts.reduce((sum, one) => sum + one, 0) / firsts.length,
});

/** One request after the other, each on a connection of its own. */
async function ask({ port, entry: { wire } }: Contestant, times: number): Promise<Figures> {
  const request = wire.request(tokens, 0);
  const firsts: number[] = [];
  const uncounted = Math.ceil(times / 5);
  for (let n = 0; n < uncounted + times; n += 1) firsts.push((await stream({ port, wire, request, tokens })).first);
  firsts.splice(0, uncounted);
  return figuresOf(firsts);
}

/** The same while 50 streams run at 50 tokens a second, with as many requests as fit into that time. */
async function askAmongOthers(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  const others = { port, wire, request: wire.request(200, 20), tokens: 200 };
  const firsts: number[] = [];
  let over = false;
  const running = Promise.all(Array.from({ length: 50 }, () => stream(others))).finally(() => {
    over = true;
  });
  // Handled here as well: a stream that fails before the loop ends would end the bench.
  running.catch(() => {});
  while (!over) {
    const { first } = await stream({ port, wire, request: wire.request(1, 0), tokens: 1 });
    firsts.push(first);
    // A pause, so that the requests are not the load.
    await after(10);
  }
  await running;
  return figuresOf(firsts);
}

const common = {
  group: 'first',
  columns: [
    { name: 'p50, ms', digits: 3 },
    { name: 'p99, ms', digits: 3 },
    { name: 'mean, ms', digits: 3 },
  ],
  base: 'fastify',
};

export const first: MeasuredInRounds[] = [
  {
    ...common,
    name: 'First token, unloaded',
    about: `${count} requests for each second of a turn (30 where one takes long), one after the other, each on a new connection; time from its opening to the first token. A fifth more requests before them do not count, because they come after minutes of idleness.`,
    takes: () => true,
    measure: (contestant, turn) =>
      ask(contestant, Math.ceil(((contestant.entry.most === undefined ? count : count / 10) * turn) / 1000)),
  },
  {
    ...common,
    name: 'First token, among 50 streams',
    about: 'The same while 50 streams run at 50 tokens/s for four seconds.',
    takes: ({ most }) => most === undefined,
    measure: askAmongOthers,
  },
];
