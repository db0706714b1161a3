import { createServer } from 'node:net';
import type { Event } from 'rivulet';
import { createClient } from 'rivulet/client';
import { expect, type TestContext } from 'vitest';
import { badProxy, type Weather } from '../support/bad-proxy.ts';
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

/** A server on one file and one port, which can be killed and started again. */
async function launch({ onTestFinished }: TestContext) {
  const project = makeProject(files);
  const port = await freePort();
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

// Below the range that outgoing connections take their ports from: while the server is down, nobody else gets it.
async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 8_000);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer().once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** As fetch, with 5 milliseconds for the second that the server asks for. */
const impatient: typeof fetch = async (...args) => {
  const response = await fetch(...args);
  const soon = new TransformStream<string, string>({
    transform: (text, controller) => controller.enqueue(text.replace('retry: 1000', 'retry: 5')),
  });
  const body = response.body
    ?.pipeThrough(new TextDecoderStream())
    .pipeThrough(soon)
    .pipeThrough(new TextEncoderStream());
  return new Response(body ?? null, response);
};

/** A run over that line, as it is seen. */
class Reader {
  readonly events: Event[] = [];
  breaks = 0;
  readonly done: Promise<void>;

  constructor(url: string, tokens: number, onEvent: () => void) {
    const onBreak = (): void => {
      this.breaks += 1;
    };
    const client = createClient({ url, fetch: impatient, reconnect: { minDelay: 1, maxDelay: 50, onBreak } });
    this.done = new Promise((complete, error) => {
      const next = (event: Event): void => {
        this.events.push(event);
        onEvent();
      };
      client.run('slow', String(tokens)).subscribe({ next, error, complete });
    });
  }
}

export interface Torment {
  readonly test: TestContext;
  /** Tokens of each run. */
  readonly total: number;
  /** Events that the slowest client has seen when the server is killed, for each kill. */
  readonly kills: number[];
  /** What lies between each client and the server. */
  readonly lines: readonly [string, Weather | undefined][];
}

/** Kills a server in the middle of its streams, and looks at what each client has seen of its run. */
export async function torment({ test, total, kills, lines }: Torment): Promise<void> {
  const least = kills.length;
  const server = await launch(test);
  const urls = await Promise.all(lines.map(([, line]) => (line ? badProxy(test, server.port, line) : server.url)));
  let restarts = Promise.resolve();
  const look = (): void => {
    // When the slowest one is so far.
    if (Math.min(...readers.map(({ events }) => events.length)) < (kills[0] ?? Number.POSITIVE_INFINITY)) return;
    kills.shift();
    restarts = restarts.then(() => server.killAndStart());
  };
  const readers = urls.map((url) => new Reader(url, total, look));
  await Promise.all(readers.map(({ done }) => done));
  await restarts;

  expect(kills).toEqual([]);
  for (const [index, { events, breaks }] of readers.entries()) {
    const [first] = events;
    const run_id = first !== undefined && 'run' in first ? first.run.run_id : '';
    const kept = await (await fetch(`${server.url}/runs/${run_id}/events`)).json();
    expect(events, lines[index]?.[0]).toEqual(kept.events);
    expect(events.filter(({ type }) => type === 'message.part')).toHaveLength(total);
    expect(events.at(-1)?.type).toBe('run.completed');
    expect(breaks).toBeGreaterThanOrEqual(least);
  }
  // No break has made a second run of one.
  const { runs } = await createClient({ url: server.url }).runs();
  expect(runs).toHaveLength(lines.length);
}
