/** The server written by hand: Fastify, JSON.stringify, one write a token; what an app without Rivulet would do. */
import type { ServerResponse } from 'node:http';
import Fastify, { type FastifyReply } from 'fastify';
import { emit, readAsked, report } from './tokens.ts';

const app = Fastify();

function begin(reply: FastifyReply): ServerResponse {
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
  return reply.raw;
}

const frame = (id: number, content: string): string =>
  `id: ${id}\ndata: ${JSON.stringify({ type: 'message.part', part: { content_type: 'text/plain', content } })}\n\n`;

app.get<{ Params: { '*': string } }>('/*', (request, reply) => {
  const response = begin(reply);
  let id = 0;
  emit(
    readAsked(request.params['*']),
    (content) => response.write(frame(++id, content)),
    () => response.end(),
  );
});

// One run for many readers: each event is encoded once and written to all. Without a log, a reader that connects later
// misses the earlier events.
const readers = new Set<ServerResponse>();
let opening = '';
app.get<{ Params: { tokens: string } }>('/watch/:tokens', (request, reply) => {
  const reader = begin(reply);
  if (readers.size === 0) {
    let id = 0;
    emit(
      { tokens: Number(request.params.tokens), pace: 'hold' },
      (content) => {
        const text = frame(++id, content);
        if (id === 1) opening = text;
        for (const one of readers) one.write(text);
      },
      () => {
        for (const one of readers) one.end();
        readers.clear();
      },
    );
  }
  readers.add(reader);
  reader.write(opening);
});

// Runs that are not streamed: an echo, with the same shape of body validated.
const part = { type: 'object', properties: { content_type: { type: 'string' }, content: { type: 'string' } } };
const message = {
  type: 'object',
  required: ['parts'],
  properties: { role: { type: 'string' }, parts: { type: 'array', items: part } },
};
const body = {
  type: 'object',
  required: ['agent_name', 'input'],
  properties: {
    agent_name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 },
    mode: { enum: ['sync', 'async', 'stream'] },
    session_id: { type: 'string', format: 'uuid' },
    input: { type: 'array', minItems: 1, items: message },
  },
};
app.post('/runs', { schema: { body } }, (request) => request.body);

await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
