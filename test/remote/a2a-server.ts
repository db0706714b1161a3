import { createServer, type IncomingMessage } from 'node:http';
import { type AgentCard, type Message, Role, type Task, type TaskArtifactUpdateEvent, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  defaultServerCallContextBuilder,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  UnauthenticatedUser,
} from '@a2a-js/sdk/server';
import { listenOn } from '../support/ports.ts';

type Part = Message['parts'][number];

/** What a task does, one call after the other. */
export interface A2aTask {
  readonly text: string;
  readonly isReply: boolean;
  work(message: string): void;
  add(artifactId: string, part: Partial<Part>, last?: boolean): void;
  end(state: TaskState, message?: string): void;
}

export const textPart = (value: string): Partial<Part> => ({ content: { $case: 'text', value } });

export interface A2aServer {
  readonly url: string;
  /** The messages that came, in order. */
  readonly messages: { readonly taskId: string; readonly messageId: string }[];
  readonly cancelled: string[];
  readonly headers: IncomingMessage['headers'][];
  /** The address that the card names from now on, such as that of a proxy. */
  advertise(url: string): void;
  close(): Promise<void>;
}

const whole = (part: Partial<Part>): Part => ({ metadata: undefined, filename: '', mediaType: '', ...part });

/** A server of the official SDK over Node's HTTP, whose tasks do what `script` says. */
export async function startA2a(
  script: (task: A2aTask) => Promise<void> | void,
  { streaming = true }: { streaming?: boolean } = {},
): Promise<A2aServer> {
  const messages: A2aServer['messages'] = [];
  const cancelled: string[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const executor: AgentExecutor = {
    async execute(context, bus) {
      messages.push({ taskId: context.taskId, messageId: context.userMessage.messageId });
      await script(taskOf(context, bus));
      bus.finished();
    },
    async cancelTask(taskId, bus) {
      cancelled.push(taskId);
      const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: new Date().toISOString() };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }));
      bus.finished();
    },
  };
  const server = createServer(async (request, response) => {
    headers.push(request.headers);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(card));
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    const context = defaultServerCallContextBuilder({
      extensions: [],
      user: new UnauthenticatedUser(),
      headers: request.headers,
      requestedVersion: '1.0',
    });
    const answer = await rpc.handle(body, context);
    if (!(Symbol.asyncIterator in answer)) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    try {
      for await (const frame of answer) response.write(`data: ${JSON.stringify(frame)}\n\n`);
    } catch (error) {
      const { id } = JSON.parse(body);
      const failed = { jsonrpc: '2.0', id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
      response.write(`data: ${JSON.stringify(failed)}\n\n`);
    }
    response.end();
  });
  const url = `${await listenOn(server)}/`;
  const card: AgentCard = {
    name: 'Tea Expert',
    description: 'Knows tea.',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    provider: undefined,
    capabilities: { streaming, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text'],
    skills: [
      {
        id: 'tea',
        name: 'Tea',
        description: 'Tea',
        tags: ['tea'],
        examples: ['Which tea?'],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
  const rpc = new JsonRpcTransportHandler(new DefaultRequestHandler(card, new InMemoryTaskStore(), executor));
  return {
    url,
    messages,
    cancelled,
    headers,
    advertise: (other) => {
      card.supportedInterfaces = [{ url: other, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function taskOf({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): A2aTask {
  const statusOf = (state: TaskState, message?: string): NonNullable<Task['status']> => ({
    state,
    timestamp: new Date().toISOString(),
    message:
      message === undefined
        ? undefined
        : {
            messageId: `${taskId} ${message}`,
            contextId,
            taskId,
            role: Role.ROLE_AGENT,
            parts: [whole(textPart(message))],
            metadata: undefined,
            extensions: [],
            referenceTaskIds: [],
          },
  });
  const begun = task ?? {
    id: taskId,
    contextId,
    status: statusOf(TaskState.TASK_STATE_SUBMITTED),
    artifacts: [],
    history: [userMessage],
    metadata: undefined,
  };
  bus.publish(AgentEvent.task({ ...begun, status: statusOf(TaskState.TASK_STATE_WORKING) }));
  const known = new Set<string>();
  const publish = (state: TaskState, message?: string): void =>
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: statusOf(state, message), metadata: undefined }));
  return {
    text: userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(''),
    isReply: task !== undefined,
    work: (message) => publish(TaskState.TASK_STATE_WORKING, message),
    add: (artifactId, part, lastChunk = false) => {
      const artifact: TaskArtifactUpdateEvent['artifact'] = {
        artifactId,
        name: '',
        description: '',
        parts: [whole(part)],
        metadata: undefined,
        extensions: [],
      };
      const append = known.has(artifactId);
      known.add(artifactId);
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }));
    },
    end: (state, message) => publish(state, message),
  };
}
