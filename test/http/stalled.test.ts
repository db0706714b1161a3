import { on, once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import Fastify from 'fastify';
import { map, range } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rivulet } from '../../src/index.ts';
import { agent, never, tokens } from '../support/agents.ts';
import { processorTime } from '../support/processor-time.ts';
import { RunFeed } from '../support/run-feed.ts';
import { apiOnly, ask, type Served, serveApi } from '../support/serve.ts';

/** Emits as many kilobytes as its input says, at once. */
const kilobytes = agent('kilobytes', (input) =>
  range(0, Number(input[0]?.parts[0]?.content)).pipe(map(() => 'x'.repeat(1_000))),
);

/** The id of a final run, without reading its output. */
async function finalRun(served: Served, name: string, text: string): Promise<string> {
  const feed = await RunFeed.open(served.url);
  const { run_id } = await (await served.post('/runs', ask(name, text, { mode: 'async' }))).json();
  await feed.has(run_id, 'completed');
  feed.cut();
  return run_id;
}

/** A stream of the run over a socket that is paused until the test reads it, and the server's end of the socket. */
const open = (served: Served, run_id: string) =>
  request(served, `GET /runs/${run_id}/events HTTP/1.1`, 'Accept: text/event-stream', 'Connection: close');

/** A request over a socket that is paused until the test reads it, and the server's end of the socket. */
async function request({ app, url }: Served, ...head: string[]): Promise<{ client: Socket; server: Socket }> {
  const { port, host } = new URL(url);
  const client = connect(Number(port), '127.0.0.1');
  onTestFinished(() => void client.destroy());
  client.on('error', () => {});
  client.pause();
  client.write(`${[...head, `Host: ${host}`].join('\r\n')}\r\n\r\n`);
  for await (const [server] of on(app.server, 'connection')) {
    if (server.remotePort === client.localPort) return { client, server };
  }
  throw new Error('the server has closed');
}

/** Reads a log of 6 MB in pieces, for longer than `stalledAfter` in all. Times are in milliseconds. */
async function readSlowly(stalledAfter: number) {
  const served = await serveApi([kilobytes], { stalledAfter });
  const { client: socket } = await open(served, await finalRun(served, 'kilobytes', '6000'));
  const clock = await serveApi([never], { heartbeat: stalledAfter / 120 });
  const from = performance.now();
  const read = { bytes: 0, tail: '', longestPause: 0 };
  let last = from;
  socket.on('readable', () => {});
  await heartbeats(clock, Number.POSITIVE_INFINITY, () => {
    const chunk: Buffer | null = socket.read(Math.max(1, Math.min(socket.readableLength, 128 * 1024)));
    read.bytes += chunk?.length ?? 0;
    read.tail = (read.tail + (chunk ?? '').toString()).slice(-10);
    read.longestPause = Math.max(read.longestPause, performance.now() - last);
    last = performance.now();
    return !socket.readableEnded && !socket.destroyed;
  });
  return { ...read, took: performance.now() - from };
}

describe('a reader', () => {
  it('that does not read pending data is dropped', async () => {
    const served = await serveApi([kilobytes], { stalledAfter: 100 });
    const run_id = await finalRun(served, 'kilobytes', '5000');
    const { server } = await open(served, run_id);
    await once(server, 'close');
    expect(server.bytesWritten).toBeLessThan(10_000_000);
  });

  it('that does not read an answer that is no stream is dropped', async () => {
    const served = await serveApi([kilobytes], { stalledAfter: 100 });
    const run_id = await finalRun(served, 'kilobytes', '8000');
    for (const path of [`/runs/${run_id}`, `/runs/${run_id}/events`]) {
      const { client, server } = await request(served, `GET ${path} HTTP/1.1`);
      await once(server, 'close');
      expect(client.bytesRead).toBeLessThan(1_000_000);
    }
  });

  it('that does not read answers to pipelined requests is dropped, also where each of them is small', async () => {
    const served = await serveApi([kilobytes], { stalledAfter: 100 });
    const run_id = await finalRun(served, 'kilobytes', '10');
    const { client, server } = await request(served, 'GET /health HTTP/1.1');
    const one = `GET /runs/${run_id} HTTP/1.1\r\nHost: ${new URL(served.url).host}\r\n\r\n`;
    client.write(one.repeat(1_000));
    await once(server, 'close');
    expect(client.bytesRead).toBeLessThan(1_000_000);
  });

  it('that does not read the last event of a stream, which is the whole run, is dropped', async () => {
    const served = await serveApi([kilobytes], { stalledAfter: 100 });
    const run_id = await finalRun(served, 'kilobytes', '8000');
    const events = await (await served.get(`/runs/${run_id}/events`)).json();
    const path = `/runs/${run_id}/events?after=${events.events.length - 1}`;
    const { client, server } = await request(served, `GET ${path} HTTP/1.1`, 'Accept: text/event-stream');
    await once(server, 'close');
    expect(client.bytesRead).toBeLessThan(1_000_000);
  });

  it('that has read everything stays connected', async () => {
    const served = await serveApi([never], { stalledAfter: 20, heartbeat: 10_000 });
    const { run_id } = await (await served.post('/runs', ask('never', '', { mode: 'async' }))).json();
    const { client: idle } = await open(served, run_id);
    let text = '';
    idle.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    idle.resume();
    // Ten times the time after which a stalled reader is dropped.
    await heartbeats(await serveApi([never], { heartbeat: 20 }), 10);
    expect(idle.readyState).toBe('open');
    expect(text).toContain('run.in-progress');
  });

  it('that reads slowly gets everything, even one event of megabytes', async () => {
    for (let stalledAfter = 600; ; stalledAfter *= 2) {
      const { bytes, tail, took, longestPause } = await readSlowly(stalledAfter);
      const isWhole = /\n0\r\n\r\n$/.test(tail);
      // Other load has kept it from reading: it gets more time.
      if (!isWhole && longestPause > stalledAfter / 4) continue;
      // The tokens, and the last event, which repeats all of them.
      expect(bytes).toBeGreaterThan(2 * 6_000_000);
      expect(isWhole).toBe(true);
      expect(took).toBeGreaterThan(stalledAfter);
      return;
    }
  });

  it('that does not read over HTTP/2 costs its window and a piece, and gets the rest later', async () => {
    const app = Fastify({ http2: true });
    onTestFinished(() => app.close());
    await app.register(rivulet, { ...apiOnly, agents: [kilobytes] });
    const session = connectHttp2(await app.listen({ port: 0, host: '127.0.0.1' }));
    onTestFinished(() => session.destroy());
    const run = await app.inject({ method: 'POST', url: '/runs', payload: ask('kilobytes', '1000') });
    const open = async () => {
      const headers = { ':path': `/runs/${run.json().run_id}/events`, accept: 'text/event-stream' };
      const client = session.request(headers).setEncoding('utf8');
      const [[, { stream: server }]] = await Promise.all([once(app.server, 'request'), once(client, 'response')]);
      return { client, server };
    };
    const stalled = await open();
    const reading = await open();
    const text = await bodyOf(reading.client);
    expect(stalled.server.writableLength).toBeLessThan(100_000);
    expect(await bodyOf(stalled.client)).toBe(text);
    expect(text.length).toBeGreaterThan(2_000_000);
  });
});

describe('fifty readers that never read a run of 5 MB', () => {
  it('cost a constant each, and do not slow down other readers', async () => {
    const served = await serveApi([kilobytes, tokens]);
    const run_id = await finalRun(served, 'kilobytes', '5000');
    const warm = median(await streamTimes(served, 9));
    const before = await memory();
    const readers: Socket[] = [];
    while (readers.length < 50) readers.push((await open(served, run_id)).server);
    while (!readers.every(({ writableLength }) => writableLength > 0)) await new Promise((go) => setImmediate(go));
    const each = ((await memory()) - before) / 50;
    let during = median(await streamTimes(served, 9));
    // Where other load has slowed them down, later ones are quicker.
    for (let more = 0; more < 5 && !(during < 3 * warm + 10); more += 1) during = median(await streamTimes(served, 9));
    // A piece of at most 16 KiB in its socket, its text, and the objects of both ends of the connection, which are both
    // in this process: 140 kB, and up to 12 kB more by what the collections before have left. Without backpressure it
    // would be megabytes.
    expect(each).toBeLessThan(200_000);
    // Fifty more streams are open, and all are idle; the rest is noise.
    expect(during).toBeLessThan(3 * warm + 10);
  });
});

describe('an open stream', () => {
  it('keeps its input, and not the body of its request as well', async () => {
    const served = await serveApi([never]);
    const size = 1_000_000;
    const before = await memory();
    for (let count = 0; count < 4; count += 1) await openWithBody(served, size);
    // It was two copies. Chunks of the body and the test's end of the connections are no tenth.
    expect(((await memory()) - before) / 4 / size).toBeLessThan(1.5);
  });
});

/** Streams a run whose input has so many characters. Resolves at the first event; the client keeps nothing. */
async function openWithBody({ url }: Served, size: number): Promise<void> {
  const { port, host } = new URL(url);
  const client = connect(Number(port), '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const body = JSON.stringify(ask('never', 'x'.repeat(size), { mode: 'stream' }));
  client.write(
    `POST /runs HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  client.write(body);
  await once(client, 'data');
}

async function bodyOf(response: Readable): Promise<string> {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

/** Milliseconds on the processor for each of some streams of a thousand tokens, one after the other. */
async function streamTimes(served: Served, count: number): Promise<number[]> {
  const measured: number[] = [];
  while (measured.length < count) {
    const from = processorTime();
    await (await served.post('/runs', ask('tokens', '1000', { mode: 'stream' }))).text();
    measured.push(processorTime() - from);
  }
  return measured;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Bytes of live memory, without garbage. */
async function memory(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('gc');
  if (typeof gc !== 'function') throw new Error('there is no gc');
  // Buffers are freed in the turn after their collection.
  for (let round = 0; round < 3; round += 1) {
    gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Calls back at every comment of an idle stream, `count` times or until it returns false. */
async function heartbeats(clock: Served, count: number, isWanted: () => boolean = () => true): Promise<void> {
  const stream = await clock.post('/runs', ask('never', '', { mode: 'stream' }));
  let beat = 0;
  for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    if (!/(^|\n):\n/.test(chunk)) continue;
    beat += 1;
    if (beat >= count || !isWanted()) return;
  }
}
