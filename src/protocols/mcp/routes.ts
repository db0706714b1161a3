import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from '@sinclair/typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail, RivuletError } from '../../core/errors.ts';
import { cut } from '../../core/json.ts';
import { compile, open } from '../../core/validate.ts';
import type { Work } from '../../http/limits/work.ts';
import { pathOf } from '../../http/requests/errors.ts';
import { lastEventIdIn } from '../../http/requests/run-requests.ts';
import { toPieces } from '../../http/sse/frames.ts';
import { Pulled } from '../../http/sse/pulled.ts';
import type { Ending } from '../../http/sse/stream.ts';
import { RunHeaders } from '../../schema/api.ts';
import { answerErrors, type ProtocolOptions } from '../protocol.ts';
import { type Asked, Calls, callIn } from './calls.ts';
import {
  Capabilities,
  type Client,
  clientOf,
  isOlder,
  olderVersions,
  serverInfoKey,
  sessionOf,
  tasksExtension,
  versions,
} from './client.ts';
import { idIn, messageIn, RpcError, resultOf, sendRefusal, sendRpcError } from './json-rpc.ts';
import { taskFrames, taskIdsIn } from './subscriptions.ts';
import { cancelTask, getTask, updateTask } from './tasks.ts';
import { toolsAfter } from './tools.ts';

/** Milliseconds for which a client may keep what it was told of the server and its tools. */
const ttlMs = 5_000;
const checkInitialize = compile(open({ protocolVersion: Type.String(), capabilities: Capabilities }), 'params');

/** The Model Context Protocol: agents are tools, at one address for both eras of the protocol. */
export const mcpRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  const { access } = options;
  const server = new McpServer(options);
  answerErrors(app, options, sendRefusal);

  app.post(
    '/',
    {
      config: { scope: 'runs:write', work: workOf },
      schema: { hide: true, headers: RunHeaders, body: Type.Unknown() },
    },
    async (request, reply) => {
      const own = access(request);
      try {
        const received = messageIn(request.body);
        const client = clientOf(request.headers, received);
        if (received.kind === 'request') {
          const { headers } = request;
          return await server.answer({ reply, own, client, message: received.message, headers });
        }
        if (received.kind === 'response') await server.calls.reply(own, received.message);
        else if (received.message.method === 'notifications/cancelled' && !client.modern) {
          await server.calls.cancelled(own, client, received.message);
        }
        return reply.code(202).send();
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        return sendRpcError(reply, idIn(request.body), error);
      }
    },
  );

  app.get(
    '/',
    {
      exposeHeadRoute: false,
      config: { scope: 'runs:read', streams: true },
      schema: { hide: true },
    },
    async (request, reply) => {
      const eventId = lastEventIdIn(request);
      if (eventId === undefined) throw notTaken(request, reply);
      return server.calls.resume(reply, access(request), eventId);
    },
  );
};

/** Only calls, and replies to what they ask, make runs work. */
function workOf(body: unknown): Work | undefined {
  try {
    const received = messageIn(body);
    if (received.kind === 'response') return 'resumes';
    if (received.kind === 'notification') return undefined;
    const { message } = received;
    if (message.method === 'tools/call') return callIn(message).requestState === undefined ? 'creates' : 'resumes';
    return message.method === 'tasks/update' ? 'resumes' : undefined;
  } catch (error) {
    // The handler refuses it as well.
    if (error instanceof RpcError || error instanceof RivuletError) return undefined;
    throw error;
  }
}

/** This server sends nothing outside of its answers. */
function notTaken(request: FastifyRequest, reply: FastifyReply): Error {
  reply.header('Allow', 'POST');
  return fail('method_unknown', request.method, pathOf(request), 'POST, or GET with Last-Event-ID');
}

class McpServer {
  readonly #options: ProtocolOptions;
  readonly calls: Calls;

  constructor(options: ProtocolOptions) {
    this.#options = options;
    this.calls = new Calls(options);
  }

  /** @throws RpcError, and RivuletError of the engine */
  async answer(asked: Asked): Promise<FastifyReply> {
    const { own, client, message } = asked;
    const { params = {} } = message;
    if (message.method === 'tools/call') return this.calls.call(asked);
    if (message.method === 'tools/list') {
      return this.#result(asked, { ...toolsAfter(own, params.cursor), ...(client.modern && cached) });
    }
    return client.modern ? this.#answerModern(asked) : this.#answerOlder(asked);
  }

  async #answerModern(asked: Asked): Promise<FastifyReply> {
    const { own, client, message } = asked;
    const { params } = message;
    switch (message.method) {
      case 'server/discover':
        return this.#result(asked, {
          supportedVersions: versions,
          capabilities: { tools: {}, extensions: { [tasksExtension]: {} } },
          ...cached,
        });
      case 'tasks/get':
        checkTasks(client);
        return this.#result(asked, await getTask(own, params));
      case 'tasks/update':
        checkTasks(client);
        return this.#result(asked, await updateTask(own, params));
      case 'tasks/cancel':
        checkTasks(client);
        return this.#result(asked, await cancelTask(own, params));
      case 'subscriptions/listen':
        return this.#listen(asked);
      default:
        throw new RpcError('unknownMethod', `There is no method ${cut(message.method, 100)}`, { status: 404 });
    }
  }

  async #answerOlder(asked: Asked): Promise<FastifyReply> {
    const { reply, message } = asked;
    switch (message.method) {
      case 'initialize': {
        const { protocolVersion, capabilities } = checkInitialize(message.params ?? {});
        reply.header('Mcp-Session-Id', sessionOf(capabilities));
        return this.#result(asked, {
          protocolVersion: isOlder(protocolVersion) ? protocolVersion : olderVersions[0],
          capabilities: { tools: {} },
          serverInfo: this.#serverInfo,
        });
      }
      case 'ping':
        return this.#result(asked, {});
      default:
        throw new RpcError('unknownMethod', `There is no method ${cut(message.method, 100)}`);
    }
  }

  get #serverInfo(): object {
    return { name: 'rivulet', version: this.#options.version };
  }

  #result({ reply, client, message }: Asked, result: object): FastifyReply {
    const whole = client.modern
      ? { resultType: 'complete', ...result, _meta: { [serverInfoKey]: this.#serverInfo } }
      : result;
    return reply.send(resultOf(message.id, whole));
  }

  /** The states of tasks, until all are final or the client disconnects. */
  async #listen({ reply, own, message }: Asked): Promise<FastifyReply> {
    const { responder } = this.#options;
    const taskIds = taskIdsIn(message.params ?? {});
    responder.admit(own, 'stream');
    const reader = await own.watchRuns({}, { limit: 1 });
    const frames = taskFrames({ own, id: message.id, taskIds, serverInfo: this.#serverInfo }, reader);
    return responder.pipe(reply, new Pulled(frames, () => reader.close()), toPieces, endOrBreak);
  }
}

/** The last frame of a subscription ends it. Without that frame, the client has to see that the stream broke. */
const endOrBreak = (error: unknown): Ending => (error === undefined ? { text: '' } : 'break');

const cached = { ttlMs, cacheScope: 'private' };

/** @throws RpcError where the client has not said that it knows tasks */
function checkTasks({ tasks }: Client): void {
  if (tasks) return;
  throw new RpcError(
    'missingCapability',
    `This method needs the extension ${tasksExtension} in the client's capabilities`,
    {
      status: 400,
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
    },
  );
}
