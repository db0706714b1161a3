import { createServer, type IncomingMessage, ServerResponse } from 'node:http';
import Fastify, { type FastifyServerOptions } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { httpLimits } from '../../src/http/limits/limits.ts';
import { Piece } from '../../src/http/sse/frames.ts';
import { sendStream } from '../../src/http/sse/stream.ts';
import { StreamMonitor } from '../../src/http/sse/stream-monitor.ts';
import { unobserved } from '../../src/http/traffic.ts';

type Prepare = (raw: ServerResponse) => void;

/** The text of a stream of two batches. `prepare` gets its response before anything is written. */
async function textOf(prepare: Prepare, options: FastifyServerOptions = {}): Promise<string> {
  const app = Fastify(options);
  onTestFinished(() => app.close());
  const streams = { monitor: new StreamMonitor({ ...httpLimits({}), traffic: unobserved }), retry: 1 };
  const batches = ['data: first\n\n', 'data: second\n\n'];
  const source = { ended: false, read: (): string => batches.shift() ?? 'end', onReady: () => {}, close: () => {} };
  app.get('/', (_, reply) => {
    prepare(reply.raw);
    sendStream(reply, source, (text) => [new Piece(text)], { streams, mode: 'run', onClose: () => {} });
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return (await fetch(url)).text();
}

const whole = /data: first\n\ndata: second\n\n$/;
const upper = (chunk: unknown): string => String(chunk).toUpperCase();

it('a stream whose response has a write of its own goes through it', async () => {
  const text = await textOf((raw) => {
    raw.write = (chunk: unknown) => ServerResponse.prototype.write.call(raw, upper(chunk), 'utf8');
  });
  expect(text).toMatch(/DATA: FIRST\n\nDATA: SECOND\n\n$/);
});

it('a stream is whole where its response gets its usual write back after the first chunk', async () => {
  const text = await textOf((raw) => {
    const { write } = raw;
    raw.write = (chunk: unknown) => {
      raw.write = write;
      return ServerResponse.prototype.write.call(raw, chunk, 'utf8');
    };
  });
  expect(text).toMatch(whole);
});

it('a stream goes through the write of a response of a class of its own', async () => {
  class Upper extends ServerResponse<IncomingMessage> {
    override write(chunk: unknown): boolean {
      return super.write(upper(chunk));
    }
  }
  const serverFactory: FastifyServerOptions['serverFactory'] = (handler) =>
    createServer({ ServerResponse: Upper }, handler);
  const text = await textOf(() => {}, { serverFactory });
  expect(text).toMatch(/DATA: FIRST\n\nDATA: SECOND\n\n$/);
});
