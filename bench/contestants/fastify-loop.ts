/** The hand-written stream: Fastify, JSON.stringify, one write a token. What people write who use no server like ours. */
import Fastify from 'fastify';
import { emit, readWork, report } from './tokens.ts';

const app = Fastify();
app.get<{ Params: { '*': string } }>('/*', (request, reply) => {
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
  let id = 0;
  emit(
    readWork(request.params['*']),
    (content) => {
      const data = JSON.stringify({ type: 'message.part', part: { content_type: 'text/plain', content } });
      reply.raw.write(`id: ${++id}\ndata: ${data}\n\n`);
    },
    () => reply.raw.end(),
  );
});
// For the comparison of runs that are not streamed: an echo with validation.
app.post(
  '/echo',
  { schema: { body: { type: 'object', required: ['agent_name'], properties: { agent_name: { type: 'string' } } } } },
  (request) => request.body,
);
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
