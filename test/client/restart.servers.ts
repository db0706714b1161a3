import type { Event } from 'rivulet';
import { createClient } from 'rivulet/client';
import { expect, it, type TestContext } from 'vitest';
import { badProxy, type Weather } from '../support/bad-proxy.ts';
import { steadyPort } from '../support/ports.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';

const files = {
  'agents/slow.js': `
    import { defineAgent } from 'rivulet';
    import { interval, map, take } from 'rxjs';
    export default defineAgent({ name: 'slow', description: 'Takes its time.' },
      (input) => interval(4).pipe(take(Number(input[0].parts[0].content)), map((n) => 't' + n + ' ')), { durable: true });
  `,
};

/** A server on one file and one port, which can be killed and restarted. */
async function launch({ onTestFinished }: TestContext) {
  const project = makeProject(files);
  const port = await steadyPort();
  const start = () => new RivuletProcess(['serve', '--port', String(port)], {}, project.folder);
  let running = start();
  onTestFinished(async () => {
    await running.stop('SIGKILL');
    project.remove();
  });
  await running.url();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async killAndStart(): Promise<void> {
      await running.stop('SIGKILL');
      running = start();
      await running.url();
    },
  };
}

/** A fetch that replaces the server's retry time of a second by 5 milliseconds. */
const fetchWithFastRetry: typeof fetch = async (...args) => {
  const response = await fetch(...args);
  const shorten = new TransformStream<string, string>({
    transform: (text, controller) => controller.enqueue(text.replace('retry: 1000', 'retry: 5')),
  });
  const body = response.body
    ?.pipeThrough(new TextDecoderStream())
    .pipeThrough(shorten)
    .pipeThrough(new TextEncoderStream());
  return new Response(body ?? null, response);
};

/** Creates a run over one network path and records its events. */
class Reader {
  readonly events: Event[] = [];
  breaks = 0;
  readonly done: Promise<void>;

  constructor(url: string, tokens: number, onEvent: () => void) {
    const onBreak = (): void => {
      this.breaks += 1;
    };
    const client = createClient({
      url,
      fetch: fetchWithFastRetry,
      reconnect: { firstRetries: 100, minDelay: 1, maxDelay: 50, onBreak },
    });
    this.done = new Promise((complete, error) => {
      const next = (event: Event): void => {
        this.events.push(event);
        onEvent();
      };
      client.run('slow', String(tokens)).subscribe({ next, error, complete });
    });
  }
}

/** The network path of each client: a name, and the faults of its proxy. */
const paths: readonly [string, Weather | undefined][] = [
  ['no proxy', undefined],
  ['a proxy that keeps cutting connections', { cutAfter: 150 }],
  ['a proxy that buffers', { holdBack: 100 }],
  ['a proxy that does both', { cutAfter: 250, holdBack: 60 }],
];

it('clients of a server that is killed twice mid-stream get every event once and unchanged', async (test) => {
  const total = 400;
  /** The number of events that the slowest client has received at each kill. */
  const kills = [50, 170];
  let killed = 0;
  const server = await launch(test);
  const urls = await Promise.all(
    paths.map(([, faults]) => (faults ? badProxy(test, server.port, faults) : server.url)),
  );
  let restarts = Promise.resolve();
  const killWhenDue = (): void => {
    const slowest = Math.min(...readers.map(({ events }) => events.length));
    if (slowest < (kills[killed] ?? Number.POSITIVE_INFINITY)) return;
    killed += 1;
    restarts = restarts.then(() => server.killAndStart());
  };
  const readers = urls.map((url) => new Reader(url, total, killWhenDue));
  await Promise.all(readers.map(({ done }) => done));
  await restarts;

  expect(killed).toBe(kills.length);
  for (const [index, { events, breaks }] of readers.entries()) {
    const [first] = events;
    const run_id = first !== undefined && 'run' in first ? first.run.run_id : '';
    const log = await (await fetch(`${server.url}/runs/${run_id}/events`)).json();
    expect(events, paths[index]?.[0]).toEqual(log.events);
    expect(events.filter(({ type }) => type === 'message.part')).toHaveLength(total);
    expect(events.at(-1)?.type).toBe('run.completed');
    expect(breaks).toBeGreaterThanOrEqual(kills.length);
  }
  // No lost connection has created a second run.
  const { runs } = await createClient({ url: server.url }).runs();
  expect(runs).toHaveLength(paths.length);
});
