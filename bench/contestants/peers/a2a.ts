/**
 * a2a-js: `jsonRpcHandler` on Express with `DefaultRequestHandler` and `InMemoryTaskStore`, asked by
 * SendStreamingMessage. A token is a status update with a piece of one message, by its id: the cheapest event with text that may come
 * many times. A stream has one message event at most; and artifact updates, or messages with ids of their own, are kept in
 * the task, which is copied at each event, so that a token would cost the more the more there were.
 */
import { randomUUID } from 'node:crypto';
import { type AgentCard, type Message, Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { emit, readAsked, report } from '../tokens.ts';

const card: AgentCard = {
  name: 'tokens',
  description: 'Emits tokens.',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'http://127.0.0.1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  provider: undefined,
  capabilities: { streaming: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
};

const executor: AgentExecutor = {
  execute: ({ taskId, contextId, userMessage }, bus) => {
    const status = (state: TaskState, message?: Message) => ({ state, message, timestamp: new Date().toISOString() });
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_WORKING),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    const update = (state: TaskState, message?: Message): void =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, message), metadata: undefined }));
    const messageId = randomUUID();
    const say = (value: string): Message => ({
      messageId,
      contextId,
      taskId,
      role: Role.ROLE_AGENT,
      parts: [{ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    });
    const [part] = userMessage.parts;
    const asked = readAsked(part?.content?.$case === 'text' ? part.content.value : '');
    return new Promise((resolve) => {
      emit(
        asked,
        (token) => update(TaskState.TASK_STATE_WORKING, say(token)),
        () => {
          update(TaskState.TASK_STATE_COMPLETED);
          bus.finished();
          resolve();
        },
      );
    });
  },
  cancelTask: () => Promise.reject(new Error('tokens are not cancelled')),
};

const app = express();
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  report(typeof address === 'object' && address !== null ? address.port : 0);
});
