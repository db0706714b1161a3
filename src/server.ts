import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyServerOptions } from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import type { Agent } from './core/agent.ts';
import type { Dispatcher } from './core/dispatcher.ts';
import { fail } from './core/errors.ts';
import type { Store } from './core/store.ts';
import { openDispatcher } from './dispatchers/open.ts';
import { Engine } from './engine/engine.ts';
import { defaultLimits, type Limits } from './engine/limits.ts';
import { type Hosted, Registry } from './engine/registry.ts';
import { acceptJson } from './http/body.ts';
import { watchConnections } from './http/close-connections.ts';
import { handleClientError, handleError, handleNotFound } from './http/error-handler.ts';
import { createFetch, type ForeignOptions } from './http/foreign.ts';
import { healthRoutes } from './http/health.ts';
import { OpenStreams } from './http/open-streams.ts';
import { serveOpenApi } from './http/openapi.ts';
import { type NameOptions, refuseForeign } from './http/own-names.ts';
import { servePlayground } from './http/playground.ts';
import { Responder } from './http/respond.ts';
import { validatorCompiler } from './http/validator.ts';
import { acp } from './protocols/acp/plugin.ts';
import { openStore } from './stores/open.ts';
import { version } from './version.ts';

export interface RivuletOptions extends NameOptions {
  /** The agents to host; with a source (a file's path), errors about them name it. Those of a Registry can be replaced. */
  readonly agents: Iterable<Agent | Hosted> | Registry;
  /** A store, which the caller closes, or the URL of one to open and close. Default `memory:`. */
  readonly store?: Store | string;
  /** Who executes runs, for a store that was passed in; the caller's as well. Default: this process, all of them. */
  readonly dispatcher?: Dispatcher;
  /** Whether this process executes runs; where several share a store, some may only serve. Default true. */
  readonly works?: boolean;
  /**
   * Base of the URLs in sessions, such as `https://agents.example.com`; its host is one of the server's names.
   * Default: the address listened on.
   */
  readonly publicUrl?: string;
  /** Reading other servers' sessions. */
  readonly foreign?: ForeignOptions;
  /** What runs may take, and how long. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds between the comments that keep an idle stream open. Default 15,000. */
  readonly heartbeat?: number;
  /** Milliseconds until a stream whose reader takes nothing of what waits is dropped; 0 for never. Default 60,000. */
  readonly stalledAfter?: number;
  /** Milliseconds that a client whose stream broke waits before it reconnects. Default 1,000. */
  readonly retry?: number;
  /** Bytes of a request's body. Default 10 Mi. */
  readonly bodyLimit?: number;
  /** JSON values of a request's body: list items, object members, lists and objects. Default 20,000. */
  readonly bodyValues?: number;
  /** Serve `/openapi.json` and `/docs`. Default true. */
  readonly docs?: boolean;
  /** Serve the playground at `/`. Default true. */
  readonly playground?: boolean;
}

export interface ServerOptions extends RivuletOptions {
  /** As Fastify's: false (default), true, or pino's options. */
  readonly logger?: FastifyServerOptions['logger'];
}

/** A queue wants a number. */
const anyNumber = 1_000_000;

/**
 * Rivulet as a Fastify plugin, to host agents inside an existing app:
 * `await app.register(rivulet, { prefix: '/acp', agents: [echo] })`.
 * Its error handling, parsers and validators stay inside.
 */
export const rivulet: FastifyPluginAsync<RivuletOptions> = async (app, options) => {
  // A store that was passed in is its caller's, and so is who else works with it.
  const url = typeof options.store === 'string' ? options.store : 'memory:';
  const store = typeof options.store === 'object' ? options.store : await openStore(url);
  const { running, lease } = { ...defaultLimits, ...options.limits };
  const onFailure = (err: unknown): void => app.log.error({ err }, 'the store did not answer');
  const onTrouble = (err: unknown): void => app.log.warn({ err }, 'the queue beside the store has trouble');
  const engine = new Engine({
    registry: options.agents instanceof Registry ? options.agents : new Registry(hosted(options.agents)),
    store,
    dispatcher:
      options.dispatcher ?? (await openDispatcher(url, { slots: running || anyNumber, lease, onError: onTrouble })),
    works: options.works ?? true,
    fetchResource: createFetch(options.foreign ?? {}),
    publicUrl: () => options.publicUrl?.replace(/\/+$/, '') ?? `${addressOf(app)}${app.prefix}`,
    logFor: (run_id) => app.log.child({ run_id }),
    onFailure,
    ...(options.limits && { limits: options.limits }),
  });
  const open = new OpenStreams({
    heartbeat: options.heartbeat ?? 15_000,
    stalledAfter: options.stalledAfter ?? 60_000,
  });
  const streams = { open, retry: options.retry ?? 1_000 };
  const responder = new Responder(engine, streams);
  const closeConnections = watchConnections(app.server);
  let stopping = false;

  app.setValidatorCompiler(validatorCompiler);
  // Responses are made by us from what the store keeps; a schema could only drop fields from them.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(handleNotFound);
  acceptJson(app, { bodyValues: options.bodyValues ?? 20_000 });
  refuseForeign(app, options);
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= options.bodyLimit ?? 10 * 1024 * 1024;
  });
  app.addHook('onRequest', async (request, reply) => {
    if (!stopping) return;
    // An EventSource takes a 503 for the end, but comes back after a broken connection.
    if (request.headers.accept?.includes('text/event-stream') && request.method === 'GET') {
      reply.hijack();
      request.raw.destroy();
      return;
    }
    reply.header('Connection', 'close');
    throw fail('stopping');
  });
  app.addHook('onReady', () => engine.start());
  // Before the server stops listening: open streams would keep it from ever closing.
  app.addHook('preClose', async () => {
    stopping = true;
    await engine.stop();
    closeConnections();
  });
  app.addHook('onClose', async () => {
    if (store !== options.store) await store.close();
  });

  await app.register(FastifySSEPlugin, { retryDelay: false });
  if (options.docs !== false) await serveOpenApi(app, version());
  if (options.playground !== false) await servePlayground(app);
  await app.register(healthRoutes, { engine });
  await app.register(acp, { engine, responder });
};

/**
 * A server that hosts agents; call `listen` on what it resolves to.
 * @throws Error with one line that says which agent or store is wrong, and why
 */
export async function createServer({ logger = false, ...options }: ServerOptions): Promise<FastifyInstance> {
  const app = Fastify({
    logger,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1000 },
    bodyLimit: options.bodyLimit ?? 10 * 1024 * 1024,
    // Ten seconds by default, and not only for starting: runs get as many when the server stops.
    pluginTimeout: 0,
    // A request that never ends may not hold a socket for ever; streams that we send are not meant.
    requestTimeout: 60_000,
    return503OnClosing: false,
    // Node would answer these two itself, with an empty body.
    http: { requireHostHeader: false },
    clientErrorHandler: handleClientError,
    frameworkErrors: handleError,
  });
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  await app.register(rivulet, options);
  return app;
}

const hosted = (agents: Iterable<Agent | Hosted>): Hosted[] =>
  [...agents].map((one) => ('agent' in one ? one : { agent: one, source: `agent ${one.manifest?.name}` }));

function addressOf(app: FastifyInstance): string {
  const address = app.server.address();
  if (address === null || typeof address === 'string') return 'http://127.0.0.1:8000';
  const host = ['0.0.0.0', '::'].includes(address.address) ? 'localhost' : address.address;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
