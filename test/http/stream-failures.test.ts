import Fastify from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import { expect, it, onTestFinished } from 'vitest';
import { fail } from '../../src/core/errors.ts';
import { httpLimits } from '../../src/http/limits/limits.ts';
import { Responder } from '../../src/http/requests/respond.ts';
import { Piece, toPieces } from '../../src/http/sse/frames.ts';
import { Pulled } from '../../src/http/sse/pulled.ts';
import { sendStream } from '../../src/http/sse/stream.ts';
import { StreamMonitor } from '../../src/http/sse/stream-monitor.ts';
import { unobserved } from '../../src/http/traffic.ts';

/** What a stream whose source throws an error leaves in the log, from warnings on, its text, and how it ends. */
async function streamed(error: Error, path = '/'): Promise<{ logged: object[]; text: string; ends: string }> {
  const logged: object[] = [];
  const stream = { write: (line: string) => void logged.push(JSON.parse(line)) };
  const app = Fastify({ logger: { level: 'warn', stream } });
  onTestFinished(() => app.close());
  const limits = httpLimits({});
  const monitor = new StreamMonitor({ ...limits, traffic: unobserved });
  const streams = { ...limits, monitor, traffic: unobserved, retry: 1 };
  await app.register(FastifySSEPlugin, { retryDelay: false });
  async function* frames(): AsyncGenerator<string[]> {
    yield ['data: first\n\n'];
    throw error;
  }
  const responder = new Responder(streams);
  app.get('/', (_, reply) =>
    sendStream(reply, new Pulled(frames(), () => {}), toPieces, { streams, mode: 'runs', onClose: () => {} }),
  );
  app.get('/of-a-protocol', (_, reply) =>
    responder.pipe(reply, new Pulled(frames(), () => {}), toPieces, () => 'break'),
  );
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const response = await fetch(`${url}${path}`);
  let text = '';
  try {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part;
    return { logged, text, ends: 'clean' };
  } catch {
    return { logged, text, ends: 'broken' };
  }
}

it('a stream that fails is an error in the log, without a word of it for the client', async () => {
  const { logged, text } = await streamed(new Error('the disk is full'));
  expect(logged).toMatchObject([{ level: 50, msg: 'a stream ended early', err: { message: 'the disk is full' } }]);
  expect(text).toContain('data: first\n\ndata: {"type":"error","error":{"code":"server_error"');
  expect(text).not.toContain('disk');
});

it('a stream of frames that a protocol makes breaks off where it fails: an event of ours would be none of its own', async () => {
  const { logged, text, ends } = await streamed(fail('store_unavailable'), '/of-a-protocol');
  expect(logged).toMatchObject([{ level: 50, msg: 'a stream ended early' }]);
  expect([text, ends]).toEqual(['retry: 1\ndata: first\n\n', 'broken']);
});

it('a stream that breaks off has what was written before, also where that waits to be sent', async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  const limits = httpLimits({});
  const streams = { monitor: new StreamMonitor({ ...limits, traffic: unobserved }), retry: 1 };
  const source = {
    batches: ['data: first\n\n'],
    ended: false,
    read(): string {
      const batch = this.batches.pop();
      if (batch === undefined) throw new Error('the disk is full');
      return batch;
    },
    onReady: () => {},
    close: () => {},
  };
  app.get('/', (_, reply) => {
    sendStream(reply, source, (text) => [new Piece(text)], {
      streams,
      mode: 'run',
      onClose: () => {},
      ending: () => 'break',
    });
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const response = await fetch(url);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  await expect(async () => {
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += part.value;
  }).rejects.toThrow('terminated');
  expect([response.status, text]).toEqual([200, 'retry: 1\ndata: first\n\n']);
});

it('a stream of a run that is removed while it is read is no failure, and tells the client', async () => {
  const { logged, text } = await streamed(fail('run_unknown', 'r1'));
  expect(logged).toEqual([]);
  expect(text).toContain('data: first\n\ndata: {"type":"error","error":{"code":"not_found"');
});
