import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { type AgentCard, type Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  defaultServerCallContextBuilder,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  UnauthenticatedUser,
} from '@a2a-js/sdk/server';
import { createClient, parts } from 'rivulet/client';
import { type Subscription, tap } from 'rxjs';

const statusOf = (state: TaskState): Task['status'] => ({
  state,
  message: undefined,
  timestamp: new Date().toISOString(),
});

/** The tasks at work, by their ids. */
const tasks = new Map<string, Subscription>();

/** An agent of the official SDK. It asks the weather agent of the first server, and says what to pack. */
const expert = (weatherServer: string): AgentExecutor => ({
  execute({ taskId, contextId, userMessage }, bus) {
    const place = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
    const publish = (state: TaskState): void =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: statusOf(state), metadata: undefined }));
    const artifactId = randomUUID();
    let append = false;
    const say = (value: string): void => {
      const text = { content: { $case: 'text' as const, value }, metadata: undefined, filename: '', mediaType: '' };
      const artifact = { artifactId, name: '', description: '', parts: [text], metadata: undefined, extensions: [] };
      const update = { taskId, contextId, artifact, append, lastChunk: false, metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate(update));
      append = true;
    };
    const status = statusOf(TaskState.TASK_STATE_WORKING);
    bus.publish(AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history: [], metadata: undefined }));
    return new Promise((resolve) => {
      const end = (state: TaskState): void => {
        tasks.delete(taskId);
        publish(state);
        bus.finished();
        resolve();
      };
      const forecast = createClient({ url: weatherServer }).run('weather', place, { on_disconnect: 'cancel' });
      const asked = forecast
        .pipe(
          parts(),
          tap(({ content, name }) => {
            const degrees = Number(/ (\d+) °C/.exec(content ?? '')?.[1]);
            if (name === undefined) say(degrees < 15 ? 'a coat, ' : 'a hat, ');
          }),
        )
        .subscribe({
          error: () => end(TaskState.TASK_STATE_FAILED),
          complete: () => {
            say('and a book.');
            end(TaskState.TASK_STATE_COMPLETED);
          },
        });
      tasks.set(taskId, asked);
      asked.add(() => resolve());
    });
  },
  async cancelTask(taskId, bus) {
    tasks.get(taskId)?.unsubscribe();
    tasks.delete(taskId);
    const status = statusOf(TaskState.TASK_STATE_CANCELED);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }));
    bus.finished();
  },
});

const cardOf = (url: string): AgentCard => ({
  name: 'expert',
  description: 'Says what to pack.',
  version: '1.0.0',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  provider: undefined,
  capabilities: { streaming: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
});

/** The SDK's server over Node's HTTP: its card, and JSON-RPC. */
export function expertServer(weatherServer: string): Server {
  const card = cardOf('http://127.0.0.1/');
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), expert(weatherServer)),
  );
  return createServer(async (request, response) => {
    const url = `http://${request.headers.host}/`;
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(cardOf(url)));
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    const { headers } = request;
    const context = { extensions: [], user: new UnauthenticatedUser(), headers, requestedVersion: '1.0' };
    const answer = await handler.handle(body, defaultServerCallContextBuilder(context));
    if (!(Symbol.asyncIterator in answer)) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    for await (const frame of answer) response.write(`data: ${JSON.stringify(frame)}\n\n`);
    response.end();
  });
}

// `tsx examples/remote/expert-server.ts` serves it, for the server of `here`.
if (process.argv[1]?.endsWith('expert-server.ts')) {
  expertServer(process.env.WEATHER_SERVER ?? 'http://127.0.0.1:8001').listen(8002, '127.0.0.1');
}
