import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import type { Agent } from './core/agent.ts';
import type { Dispatcher } from './core/dispatcher.ts';
import { fail } from './core/errors.ts';
import type { Store } from './core/store.ts';
import { openDispatcher } from './dispatchers/open.ts';
import { Engine } from './engine/engine.ts';
import { type Limits, parseLimits } from './engine/limits.ts';
import { type Hosted, Registry } from './engine/registry.ts';
import { type NameOptions, publicPath, refuseForeign } from './http/allowed-origins.ts';
import { acceptJson } from './http/body.ts';
import { Connections } from './http/connections.ts';
import { handleError, pathOf } from './http/errors.ts';
import { healthRoutes } from './http/health.ts';
import { type ConnectionLimits, connectionLimits, type HttpLimits, httpLimits } from './http/limits.ts';
import { wantsStream } from './http/negotiation.ts';
import { serveOpenApi } from './http/openapi.ts';
import { servePlayground } from './http/playground.ts';
import { createFetch, type ForeignOptions } from './http/remote-fetch.ts';
import { Responder } from './http/respond.ts';
import { refuseUnknown } from './http/routes.ts';
import { secure } from './http/security-headers.ts';
import { OpenStreams } from './http/sse/open-streams.ts';
import { validatorCompiler } from './http/validation.ts';
import { acp } from './protocols/acp/plugin.ts';
import { openStore } from './stores/open.ts';
import { version } from './version.ts';

export interface RivuletOptions extends NameOptions, Partial<HttpLimits> {
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
  /** Serve `/openapi.json` and `/docs`. Default true. */
  readonly docs?: boolean;
  /** Serve the playground at `/`. Default true. */
  readonly playground?: boolean;
}

export interface ServerOptions extends RivuletOptions, Partial<ConnectionLimits> {
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
export const rivulet: FastifyPluginAsync<RivuletOptions> = (app, options) =>
  host(app, options, new Connections(app.server));

async function host(app: FastifyInstance, options: RivuletOptions, connections: Connections): Promise<void> {
  const http = httpLimits(options);
  const limits = parseLimits(options.limits);
  const registry = options.agents instanceof Registry ? options.agents : new Registry(hosted(options.agents));
  const fetchResource = createFetch(options.foreign ?? {});
  const base = publicPath(options) ?? app.prefix;
  secure(app);
  refuseForeign(app, options);
  // A store that was passed in is its caller's, and so is who else works with it.
  const url = typeof options.store === 'string' ? options.store : 'memory:';
  const store = typeof options.store === 'object' ? options.store : await openStore(url, (text) => app.log.warn(text));
  // At once: what follows may fail, and the connection, or the lock on a file, has to go all the same.
  if (store !== options.store) app.addHook('onClose', () => store.close());
  const { running, lease } = limits;
  const onFailure = (err: unknown): void => app.log.error({ err }, 'the store did not answer');
  const onTrouble = (err: unknown): void => app.log.warn({ err }, 'the queue beside the store has trouble');
  const engine = new Engine({
    registry,
    store,
    dispatcher:
      options.dispatcher ?? (await openDispatcher(url, { slots: running || anyNumber, lease, onError: onTrouble })),
    executesRuns: options.works ?? true,
    fetchResource,
    publicUrl: () => options.publicUrl?.replace(/\/+$/, '') ?? `${addressOf(app)}${app.prefix}`,
    logFor: (run_id) => app.log.child({ run_id }),
    onFailure,
    limits,
  });
  const open = new OpenStreams(http);
  const responder = new Responder(engine, { open, retry: http.retry });
  let stopping = false;

  app.setValidatorCompiler(validatorCompiler);
  // Responses are made by us from what the store keeps; a schema could only drop fields from them.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler(handleError);
  refuseUnknown(app);
  acceptJson(app, http);
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= http.bodyLimit;
  });
  app.addHook('onRequest', (request, reply, next) => {
    const isStream = request.method === 'GET' && wantsStream(request);
    if (!stopping && !(isStream && open.full)) return next();
    // An EventSource takes a 503 for the end, but comes back after a broken connection.
    if (isStream) {
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
    connections.close();
  });

  await app.register(FastifySSEPlugin, { retryDelay: false });
  if (options.docs !== false) {
    const agent = registry.list()[0]?.manifest.name ?? 'echo';
    await serveOpenApi(app, { version: version(), server: options.publicUrl ?? (app.prefix || '/'), base, agent });
  }
  if (options.playground !== false) await servePlayground(app, base);
  await app.register(healthRoutes, { engine });
  await app.register(acp, { engine, responder, base });
}

/**
 * A server that hosts agents; call `listen` on what it resolves to.
 * @throws Error with one line that says which agent or store is wrong, and why
 */
export async function createServer({ logger = false, ...options }: ServerOptions): Promise<FastifyInstance> {
  const { maxConnections, headersTimeout, receiveTimeout, keepAliveTimeout } = connectionLimits(options);
  const checkEvery = Math.min(5_000, headersTimeout, receiveTimeout, keepAliveTimeout);
  const app = Fastify({
    logger: logger === false ? false : withoutQueries(logger === true ? {} : logger),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1000 },
    bodyLimit: httpLimits(options).bodyLimit,
    // Ten seconds by default, and not only for starting: runs get as many when the server stops.
    pluginTimeout: 0,
    // A request that never ends may not hold a socket for ever; streams that we send are not meant.
    requestTimeout: receiveTimeout,
    keepAliveTimeout,
    maxRequestsPerSocket: 10_000,
    return503OnClosing: false,
    http: {
      // Node would answer a request without Host itself, with an empty body.
      requireHostHeader: false,
      headersTimeout: Math.min(headersTimeout, receiveTimeout),
      connectionsCheckingInterval: checkEvery,
    },
    clientErrorHandler: (error, socket) => connections.refuse(error, socket),
    frameworkErrors: handleError,
  });
  const connections = new Connections(app.server);
  connections.closeIdle(keepAliveTimeout, checkEvery);
  app.server.maxConnections = maxConnections;
  // So it would answer an Expect that it does not know.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  try {
    await app.register((inner) => host(inner, options, connections));
  } catch (error) {
    await app.close();
    throw error;
  }
  return app;
}

/** Lines about requests have their paths only: a query may hold a token or what somebody asked for. */
const withoutQueries = (options: Exclude<ServerOptions['logger'], boolean | undefined>) => ({
  ...options,
  serializers: {
    req: (request: FastifyRequest) => ({
      method: request.method,
      url: pathOf(request),
      host: request.host,
      remoteAddress: request.ip,
      remotePort: request.socket.remotePort,
    }),
    ...options.serializers,
  },
});

const hosted = (agents: Iterable<Agent | Hosted>): Hosted[] =>
  [...agents].map((one) => ('agent' in one ? one : { agent: one, source: `agent ${one.manifest?.name}` }));

function addressOf(app: FastifyInstance): string {
  const address = app.server.address();
  if (address === null || typeof address === 'string') return 'http://127.0.0.1:8000';
  const host = ['0.0.0.0', '::'].includes(address.address) ? 'localhost' : address.address;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
