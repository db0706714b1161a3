import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { createServer, defineAgent, type Event } from 'rivulet';
import { of, Subject, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import approve from '../../agents/approve.ts';
import { follow, start } from '../../examples/node-client.ts';

/** A proxy that cuts connection n after `cuts[n]` bytes, at any position in an event. */
class BadLine {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The Last-Event-ID of each connection. */
  readonly cursors: (string | undefined)[] = [];

  constructor(port: number, cuts: readonly number[], onCut: () => void = () => {}) {
    this.#server = createTcpServer((client) => {
      const upstream = connect(port, '127.0.0.1');
      let left = Number.POSITIVE_INFINITY;
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket.on('error', () => {}));
        socket.on('close', () => {
          client.destroy();
          upstream.destroy();
        });
      }
      client.on('data', (chunk) => {
        const request = chunk.toString();
        if (request.includes('/events')) {
          left = cuts[this.cursors.length] ?? left;
          this.cursors.push(/last-event-id: (\d+)/i.exec(request)?.[1]);
        }
        upstream.write(chunk);
      });
      upstream.on('data', (chunk) => {
        if (left <= 0) return;
        // Replaces the retry time of a second by ten milliseconds, in as many bytes.
        const bytes = Buffer.from(chunk.toString('latin1').replace('retry: 1000', 'retry: 0010'), 'latin1');
        const last = bytes.length >= left;
        client.write(bytes.subarray(0, Math.min(bytes.length, left)), () => last && client.resetAndDestroy());
        left -= bytes.length;
        if (last) onCut();
      });
    });
  }

  async open(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server.close(), 'close');
  }
}

const total = 40;
let app: FastifyInstance;
let base: string;
let port: number;
let emitted: number;
let tokens: Subject<string>;

/** Makes the agent emit its next token, or complete. */
function emitNext(): void {
  emitted += 1;
  if (emitted > total) tokens.complete();
  else tokens.next(`token ${emitted} `);
}

beforeEach(async () => {
  emitted = 0;
  tokens = new Subject();
  const tokenAgent = defineAgent({ name: 'told', description: 'Emits when the test does.' }, () => tokens);
  const short = defineAgent({ name: 'short', description: 'Returns its input.' }, (input) => of(...input));
  const fails = defineAgent({ name: 'fails', description: 'Fails.' }, () => throwError(() => new Error('no luck')));
  app = await createServer({ agents: [tokenAgent, short, fails, approve] });
  base = await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
afterEach(() => app.close());

describe('follow', () => {
  it('emits every event once, in order, over connections that keep breaking', async () => {
    // In the middle of an event, in the headers, and after the first events, while the agent emits.
    const line = new BadLine(port, [1_500, 100, 700, 1_100], () => {
      for (let n = 0; n < 3; n += 1) emitNext();
    });
    onTestFinished(() => line.close());
    const { run_id } = await start(base, 'told', 'Go');
    const ids: number[] = [];
    const events: Event[] = [];
    const run = await follow(await line.open(), run_id, (event, id) => {
      ids.push(id);
      events.push(event);
      // The next token follows this one, so the run cannot end before the connection breaks.
      if (event.type === 'run.in-progress' || event.type === 'message.part') emitNext();
    });

    const stored = await (await fetch(`${base}/runs/${run_id}/events`)).json();
    expect(line.cursors).toHaveLength(5);
    expect(line.cursors[0]).toBeUndefined();
    expect(Number(line.cursors.at(-1))).toBeLessThan(stored.events.length - 3);
    expect(ids).toEqual(stored.events.map((_: Event, index: number) => index + 1));
    expect(events).toEqual(stored.events);
    expect(run.output[0]?.parts[0]?.content).toMatch(/^token 1 .* token 40 $/);
  });

  it('continues after an await', async () => {
    const { run_id } = await start(base, 'approve', 'dance');
    const types: string[] = [];
    const run = await follow(base, run_id, ({ type }) => {
      types.push(type);
      if (type !== 'run.awaiting') return;
      const message = { parts: [{ content: 'yes' }] };
      void fetch(`${base}/runs/${run_id}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ mode: 'async', await_resume: { type: 'message', message } }),
      });
    });
    expect(run.status).toBe('completed');
    expect(types.filter((type) => type.startsWith('run.'))).toEqual([
      'run.created',
      'run.in-progress',
      'run.awaiting',
      'run.in-progress',
      'run.completed',
    ]);
  });

  it('resolves to a failed run with its error', async () => {
    const { run_id } = await start(base, 'fails', 'Go');
    const run = await follow(base, run_id, () => {});
    expect(run).toMatchObject({ status: 'failed', error: { code: 'server_error', message: 'no luck' } });
  });

  it('rejects if the run does not exist', async () => {
    const missing = '00000000-0000-4000-8000-000000000000';
    await expect(follow(base, missing, () => {})).rejects.toThrow(`the events of run ${missing} cannot be read`);
  });

  it('rejects when its listener throws', async () => {
    const { run_id } = await start(base, 'short', 'Go');
    const broken = follow(base, run_id, () => {
      throw new Error('the disk is full');
    });
    await expect(broken).rejects.toThrow('the disk is full');
  });
});

describe('node-client.ts as a script', () => {
  const script = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', 'examples/node-client.ts', ...args], {
      timeout: 200_000,
    });

  it('prints the output and exits, also over a connection that breaks', async () => {
    const line = new BadLine(port, [400]);
    onTestFinished(() => line.close());
    const { stdout, stderr } = await script(await line.open(), 'short', 'Hello, you');
    expect(stdout).toBe('Hello, you\n');
    expect(stderr).toBe('completed\n');
    expect(line.cursors).toHaveLength(2);
  });

  it('exits with 1 and the reason if the run fails', async () => {
    await expect(script(base, 'fails', 'Go')).rejects.toMatchObject({ code: 1, stderr: 'failed: no luck\n' });
  });
});
