/**
 * AG-UI: its encoder on Fastify, as there is no server of its own. Events as the protocol orders them:
 * RUN_STARTED, TEXT_MESSAGE_START, a TEXT_MESSAGE_CONTENT for each token, TEXT_MESSAGE_END, RUN_FINISHED.
 */
import { type BaseEvent, EventType } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import Fastify from 'fastify';
import { emit, readAsked, report } from '../tokens.ts';

const app = Fastify();
app.post('/', (request, reply) => {
  const { threadId, runId, messages } = RunAgentInputSchema.parse(request.body);
  const encoder = new EventEncoder({ accept: 'text/event-stream' });
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': encoder.getContentType() });
  const send = (event: BaseEvent & Record<string, unknown>): void => void reply.raw.write(encoder.encode(event));
  const messageId = 'answer';
  send({ type: EventType.RUN_STARTED, threadId, runId });
  send({ type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant' });
  emit(
    readAsked(String(messages[0]?.content)),
    (delta) => send({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta }),
    () => {
      send({ type: EventType.TEXT_MESSAGE_END, messageId });
      send({ type: EventType.RUN_FINISHED, threadId, runId });
      reply.raw.end();
    },
  );
});
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
