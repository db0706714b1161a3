import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServerOptions } from '../../src/index.ts';
import { agent, echo, never, Tap } from '../support/agents.ts';
import { ask, finished, type Served, serveApi } from '../support/serve.ts';

/** A raw connection, and the text received so far. */
class Wire {
  readonly socket: Socket;
  text = '';
  readonly closed: Promise<void>;

  constructor({ url }: Served) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket.setEncoding('utf8').on('data', (chunk) => {
      this.text += chunk;
    });
    // A reset also ends the connection.
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) => this.socket.on('close', () => resolve()));
    onTestFinished(() => void this.socket.destroy());
  }

  send(...lines: string[]): this {
    this.socket.write(lines.map((line) => `${line}\r\n`).join(''));
    return this;
  }

  async until(what: string | RegExp): Promise<void> {
    while (!this.text.match(what)) await once(this.socket, 'data');
  }
}

const json = (served: Served, body: object, ...headers: string[]): Wire => {
  const text = JSON.stringify(body);
  const length = `Content-Length: ${Buffer.byteLength(text)}`;
  return new Wire(served)
    .send('POST /runs HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', length, ...headers, '')
    .send(text);
};
const errorIn = (text: string) => JSON.parse(text.split('\r\n\r\n')[1] ?? '');

describe('invalid HTTP', () => {
  it('is not answered during a stream, which ends', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    const wire = json(served, ask('tap', 'a', { mode: 'stream' }));
    await tap.started();
    tap.push('first');
    await wire.until('first');
    wire.send('NONSENSE', '');
    await wire.closed;
    expect(wire.text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(wire.text).not.toContain('not valid HTTP');
  });

  it('is not answered instead of a pending run', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent]);
    const wire = json(served, ask('tap'));
    await tap.started();
    wire.send('NONSENSE', '');
    await wire.closed;
    expect(wire.text).toBe('');
    tap.complete();
  });

  it('is answered in the body of a request, and between requests', async () => {
    const served = await serveApi([echo]);
    const body = new Wire(served)
      .send('POST /runs HTTP/1.1', 'Host: localhost', 'Content-Type: application/json')
      .send('Transfer-Encoding: chunked', '', 'zz', '{}', '0', '');
    await body.closed;
    expect(body.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(errorIn(body.text).message).toContain('not valid HTTP');
    const later = new Wire(served).send('GET /ping HTTP/1.1', 'Host: localhost', '');
    await later.until('{}');
    later.send('NONSENSE', '');
    await later.closed;
    expect(later.text).toMatch(/\{\}HTTP\/1\.1 400 Bad Request\r\n/);
  });

  it('has its own reason phrase where headers are too large', async () => {
    const served = await serveApi([echo]);
    const wire = new Wire(served).send('GET /ping HTTP/1.1', 'Host: localhost', `X: ${'a'.repeat(70_000)}`, '');
    await wire.closed;
    expect(wire.text).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(errorIn(wire.text).code).toBe('invalid_input');
  });
});

describe('a slow client', () => {
  const quick = { headersTimeout: 50, receiveTimeout: 100, keepAliveTimeout: 100 };

  it('is answered 408 for late headers', async () => {
    const served = await serveApi([echo], quick);
    const wire = new Wire(served).send('GET /ping HTTP/1.1', 'Host: localhost');
    await wire.closed;
    expect(wire.text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(errorIn(wire.text)).toMatchObject({ code: 'invalid_input', data: { reason: 'request_timeout' } });
  });

  it('is answered 408 for a late body', async () => {
    const served = await serveApi([echo], quick);
    const wire = new Wire(served)
      .send('POST /runs HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 100', '')
      .send('{');
    await wire.closed;
    expect(wire.text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(wire.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it('that sends nothing gets no answer, as for an unused connection of a browser', async () => {
    const served = await serveApi([echo], quick);
    const wire = new Wire(served);
    await wire.closed;
    expect(wire.text).toBe('');
  });

  it('does not keep a connection open with line feeds, neither after a request nor before any', async () => {
    const served = await serveApi([echo], { keepAliveTimeout: 300 });
    const [used, unused] = [new Wire(served), new Wire(served)];
    used.send('GET /ping HTTP/1.1', 'Host: localhost', '');
    await used.until('{}');
    const timer = setInterval(() => [used, unused].map((wire) => wire.send('')), 10);
    onTestFinished(() => clearInterval(timer));
    for (const wire of [used, unused]) {
      await wire.closed;
      expect(wire.text).not.toContain('400');
    }
  });

  it('may read a stream or wait for a run for longer than the time-out', async () => {
    const tap = new Tap();
    const served = await serveApi([never, tap.agent], { keepAliveTimeout: 300, heartbeat: 30 });
    const stream = json(served, ask('never', 'a', { mode: 'stream' }));
    const waiting = json(served, ask('tap'));
    await tap.started();
    // Twice the time-out.
    await stream.until(/(:\n[^:]*){20}/);
    tap.complete();
    await waiting.until('completed');
  });
});

describe('a client that leaves a stream', () => {
  const leaving = ask('never', 'a', { mode: 'stream' });
  const body = JSON.stringify(leaving);
  const streaming = [
    'POST /runs HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    'On-Disconnect: cancel',
    `Content-Length: ${body.length}`,
    '',
  ];
  const pings = (count: number): string[] => Array(count).fill(['GET /ping HTTP/1.1', 'Host: localhost', '']).flat();
  // With its lines, each request of the connection waits for the end of its response.
  const logger = { level: 'info', stream: { write: () => {} } };
  const onlyRun = async (served: Served) => (await (await served.get('/runs')).json()).runs[0];

  it('cancels its run, also where the connection had other requests before', async () => {
    const served = await serveApi([never], { logger });
    const wire = new Wire(served);
    for (const count of [1, 2]) {
      wire.send(...pings(1));
      await wire.until(new RegExp(`({}[^]*){${count}}`));
    }
    wire.send(...streaming).socket.write(body);
    await wire.until('run.in-progress');
    wire.socket.destroy();
    await expect.poll(async () => (await onlyRun(served)).status).toBe('cancelled');
  });

  it('cancels its run, also where the stream waits behind another response', async () => {
    const tap = new Tap();
    const served = await serveApi([never, tap.agent], { logger });
    const wire = json(served, ask('tap'));
    await tap.started();
    wire.send(...streaming).socket.write(body);
    await expect.poll(async () => (await onlyRun(served)).agent_name).toBe('never');
    await expect.poll(async () => (await onlyRun(served)).status).toBe('in-progress');
    wire.socket.destroy();
    await expect.poll(async () => (await onlyRun(served)).status).toBe('cancelled');
  });
});

describe('a server that is full', () => {
  it('closes connections beyond its limit, and accepts new ones later', async () => {
    const served = await serveApi([echo], { maxConnections: 2 });
    const open = [new Wire(served), new Wire(served)];
    for (const wire of open) {
      wire.send('GET /ping HTTP/1.1', 'Host: localhost', '');
      await wire.until('{}');
    }
    await new Wire(served).closed;
    open[0]?.socket.destroy();
    await open[0]?.closed;
    await expect.poll(() => served.get('/ping').then(({ status }) => status, String)).toBe(200);
  });

  it('closes connections of an address beyond its limit, but not those of a proxy', async () => {
    const answered = async (served: Served): Promise<Wire> => {
      const wire = new Wire(served).send('GET /ping HTTP/1.1', 'Host: localhost', '');
      await wire.until('{}');
      return wire;
    };
    const served = await serveApi([echo], { connectionsPerAddress: 2 });
    const [first] = [await answered(served), await answered(served)];
    await new Wire(served).closed;
    first?.socket.destroy();
    await first?.closed;
    await expect.poll(() => served.get('/ping').then(({ status }) => status, String)).toBe(200);
    const proxied = await serveApi([echo], { connectionsPerAddress: 2, trustProxy: ['127.0.0.0/8'] });
    for (let count = 0; count < 4; count += 1) await answered(proxied);
  });

  it('creates no run for a refused stream, and closes the connection of a refused reader', async () => {
    const tap = new Tap();
    const served = await serveApi([tap.agent, echo], { maxStreams: 1 });
    const first = await served.post('/runs', ask('tap', 'a', { mode: 'stream' }));
    await tap.started();
    const refused = await served.post('/runs', ask('echo', 'b', { mode: 'stream' }));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await refused.json()).message).toContain('1 streams are open');
    expect((await (await served.get('/runs')).json()).runs).toHaveLength(1);
    const events = `/runs/${first.headers.get('run-id')}/events`;
    await expect(served.get(events, { accept: 'text/event-stream' })).rejects.toThrow();
    expect((await served.get(events)).status).toBe(200);
    expect((await served.post('/runs', ask('echo'))).status).toBe(200);
    tap.complete();
    await first.text();
    expect((await finished(served, first.headers.get('run-id') ?? '')).status).toBe('completed');
    expect((await served.post('/runs', ask('echo', 'b', { mode: 'stream' }))).status).toBe(200);
  });
});

describe('the time-outs of Node’s server', () => {
  async function timesOf(options: Partial<ServerOptions> = {}) {
    const { server } = (await serveApi([echo], options)).app;
    const { headersTimeout, requestTimeout, keepAliveTimeout } = server;
    // How often Node looks for late requests: a property of its servers, missing in their type.
    const checked: unknown = Reflect.get(server, 'connectionsCheckingInterval');
    return { headersTimeout, requestTimeout, keepAliveTimeout, checked };
  }

  it('are the documented defaults, and checked every five seconds', async () => {
    const documented = { headersTimeout: 15_000, requestTimeout: 60_000, keepAliveTimeout: 72_000 };
    expect(await timesOf()).toEqual({ ...documented, checked: 5_000 });
  });

  it('are those of the options, and checked as often as the shortest says', async () => {
    const options = { headersTimeout: 900, receiveTimeout: 800, keepAliveTimeout: 700 };
    // Headers that may take longer than the request that they belong to are refused by Node.
    const expected = { headersTimeout: 800, requestTimeout: 800, keepAliveTimeout: 700, checked: 700 };
    expect(await timesOf(options)).toEqual(expected);
  });
});

it('a connection is closed after ten thousand requests, so that none is kept for ever', async () => {
  const served = await serveApi([echo]);
  expect(served.app.server.maxRequestsPerSocket).toBe(10_000);
});

describe('options', () => {
  it.each<[Partial<ServerOptions>, string]>([
    [{ heartbeat: 0 }, 'options.heartbeat: expected integer to be greater or equal to 1'],
    [{ heartbeat: 2 ** 31 }, 'options.heartbeat: expected integer to be less or equal to 2147483647'],
    [{ stalledAfter: -1 }, 'options.stalledAfter: expected integer to be greater or equal to 0'],
    [{ retry: 0.5 }, 'options.retry: expected integer'],
    [{ bodyLimit: 0 }, 'options.bodyLimit: expected integer to be greater or equal to 1'],
    [{ maxConnections: 0 }, 'options.maxConnections: expected integer to be greater or equal to 1'],
    [{ receiveTimeout: Number.NaN }, 'options.receiveTimeout: expected integer'],
    [{ limits: { sweepInterval: 0 } }, 'limits.sweepInterval: expected integer to be greater or equal to 1'],
    [{ limits: { pollInterval: 0 } }, 'limits.pollInterval: expected integer to be greater or equal to 1'],
    [{ limits: { requestTimeout: 0 } }, 'limits.requestTimeout: expected integer to be greater or equal to 1'],
    [{ limits: { lease: 2 ** 31 } }, 'limits.lease: expected integer to be less or equal to 2147483647'],
    [{ limits: { runTtl: Number.POSITIVE_INFINITY } }, 'limits.runTtl: expected integer'],
    [{ limits: { runTimeout: -1 } }, 'limits.runTimeout: expected integer to be greater or equal to 0'],
    [{ limits: JSON.parse('{"runtime":5}') }, 'limits.runtime: unexpected property'],
  ])('that are invalid prevent the start, and are named: %j', async (options, says) => {
    await expect(serveApi([agent('a', () => 'ok')], options)).rejects.toThrow(says);
  });
});
