/** One run with many readers. */
import type { Contestant } from '../contestant.ts';
import { hold } from '../load/held-streams.ts';
import { bodyOf, requests } from '../load/requests.ts';
import { get, post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type MeasuredInRounds } from '../work.ts';

const readers = 100;
const tokens = 2_000;

/** Starts a run that waits after its first token. Returns the path of its events. */
async function begin(contestant: Contestant): Promise<string> {
  const { port } = contestant;
  const request = post('/runs', runOf('tokens', 'async', `${tokens}/hold`), { connection: 'keep-alive' });
  const [answer = ''] = await requests({
    port,
    connections: 1,
    count: 1,
    request,
    right: (text) => text.includes(' 202 '),
  });
  return `/runs/${JSON.parse(bodyOf(answer)).run_id}/events`;
}

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  const path = isRivulet(contestant.entry) ? await begin(contestant) : `/watch/${tokens}`;
  const request = get(path, 'Accept: text/event-stream\r\n');
  // Every reader has the first token, so all of them follow the rest live.
  const { ended } = await hold(readers, { port, wire, request, tokens });
  const before = await contestant.usage();
  const begun = performance.now();
  contestant.release();
  await ended;
  const took = performance.now() - begun;
  const { cpu } = await contestant.usage();
  const events = readers * tokens;
  return { 'CPU-µs an event and reader': (cpu - before.cpu) / events, 'events/s': events / (took / 1000) };
}

export const watched: MeasuredInRounds[] = [
  {
    name: 'One run with 100 readers',
    group: 'readers',
    about: `A run of ${tokens} tokens that ${readers} readers follow live; each gets every token. The loop by hand encodes each token once and writes it to all, without a log.`,
    columns: [
      { name: 'CPU-µs an event and reader', digits: 2 },
      { name: 'events/s', digits: 0 },
    ],
    base: 'fastify',
    takes: (entry) => isRivulet(entry) || entry.id === 'fastify',
    measure,
  },
];
