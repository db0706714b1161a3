/** Readers that reconnect. */
import type { Contestant } from '../contestant.ts';
import { requests } from '../load/requests.ts';
import { stream } from '../load/stream.ts';
import { get, post, runOf } from '../wires.ts';
import { type Figures, isRivulet, type MeasuredInRounds, median, quantile } from '../work.ts';

const tokens = 10_000;
/** Events before the tokens: run.created, run.in-progress and message.created. */
const eventsBefore = 3;
const logs = new WeakMap<Contestant, Promise<string>>();

/** Makes a final run with a log of 10,000 tokens, the same for all rounds. Resolves to the path of its events. */
async function make({ port }: Contestant): Promise<string> {
  const request = post('/runs', runOf('tokens', 'sync', `${tokens}/0`), { connection: 'keep-alive' });
  const right = (text: string): boolean => text.includes('"status":"completed"');
  const [answer = ''] = await requests({ port, connections: 1, count: 1, request, right });
  return `/runs/${/run-id: (\S+)/i.exec(answer)?.[1]}/events`;
}

async function measure(contestant: Contestant): Promise<Figures> {
  const { port } = contestant;
  const { wire } = contestant.entry;
  const path = await (logs.get(contestant) ?? logs.set(contestant, make(contestant)).get(contestant));
  const from = (after: number): Promise<{ first: number; whole: number }> => {
    const headers = `Accept: text/event-stream\r\nLast-Event-ID: ${after}\r\n`;
    const first = Math.max(0, after - eventsBefore);
    return stream({ port, wire, request: get(path ?? '', headers), from: first, tokens: tokens - first });
  };
  const whole: number[] = [];
  for (let n = 0; n < 10; n += 1) whole.push((await from(0)).whole);
  const firsts: number[] = [];
  for (let n = 0; n < 100; n += 1) firsts.push((await from(eventsBefore + tokens - 100 - n)).first);
  const before = await contestant.usage();
  const begun = performance.now();
  await Promise.all(Array.from({ length: 50 }, (_, n) => from(n * 200)));
  const took = performance.now() - begun;
  const { cpu } = await contestant.usage();
  const events = Array.from({ length: 50 }, (_, n) => tokens - Math.max(0, n * 200 - eventsBefore));
  const total = events.reduce((sum, one) => sum + one, 0);
  return {
    'events/s': (tokens * 1000) / median(whole),
    'reconnect p50, ms': quantile(firsts, 0.5),
    'reconnect p99, ms': quantile(firsts, 0.99),
    '50 at once, events/s': total / (took / 1000),
    'CPU-µs an event': (cpu - before.cpu) / total,
  };
}

export const replay: MeasuredInRounds[] = [
  {
    name: 'Reconnects to a log of 10,000 tokens',
    group: 'replay',
    about:
      'A final run is read from its first event; by readers that reconnect at its last hundred or two tokens (time to the first missed token); and by 50 readers that reconnect at once at different events.',
    columns: [
      { name: 'events/s', digits: 0 },
      { name: 'reconnect p50, ms', digits: 2 },
      { name: 'reconnect p99, ms', digits: 2 },
      { name: '50 at once, events/s', digits: 0 },
      { name: 'CPU-µs an event', digits: 2 },
    ],
    takes: isRivulet,
    measure,
  },
];
