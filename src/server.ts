import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import { fail } from './core/errors.ts';
import { type NameOptions, publicPath, refuseForeign } from './http/allowed-origins.ts';
import { acceptJson } from './http/body.ts';
import { Connections } from './http/connections.ts';
import { handleError, pathOf } from './http/errors.ts';
import { healthRoutes } from './http/health.ts';
import { type ConnectionLimits, connectionLimits, type HttpLimits, httpLimits } from './http/limits.ts';
import { wantsStream } from './http/negotiation.ts';
import { serveOpenApi } from './http/openapi.ts';
import { servePlayground } from './http/playground.ts';
import { Responder } from './http/respond.ts';
import { refuseUnknown } from './http/routes.ts';
import { secure } from './http/security-headers.ts';
import { OpenStreams } from './http/sse/open-streams.ts';
import { validatorCompiler } from './http/validation.ts';
import { acp } from './protocols/acp/plugin.ts';
import { type HostOptions, LocalRuntime, type Runtime } from './runtime.ts';
import { version } from './version.ts';

/** How a runtime is served. */
export interface ServingOptions extends Partial<HttpLimits>, Omit<NameOptions, 'publicUrl'> {
  /** Serve `/openapi.json` and `/docs`. Default true. */
  readonly docs?: boolean;
  /** Serve the playground at `/`. Default true. */
  readonly playground?: boolean;
}

/** Agents to serve. The server makes a runtime for them, and closes it. The host of `publicUrl` is one of its names. */
export interface RivuletOptions extends HostOptions, ServingOptions {
  readonly runtime?: never;
}

/** A runtime to serve. The caller has made it with options of its own, and closes it after the server. */
export interface RuntimeServingOptions extends ServingOptions, Partial<Record<keyof HostOptions, never>> {
  readonly runtime: Runtime;
}

export interface ListenerOptions extends Partial<ConnectionLimits> {
  /** As Fastify's: false (default), true, or pino's options. */
  readonly logger?: FastifyServerOptions['logger'];
}

export interface ServerOptions extends RivuletOptions, ListenerOptions {}

export interface RuntimeServerOptions extends RuntimeServingOptions, ListenerOptions {}

/**
 * Rivulet as a Fastify plugin, to host agents inside an existing app:
 * `await app.register(rivulet, { prefix: '/acp', agents: [echo] })`.
 * Its error handling, parsers and validators stay inside.
 */
export const rivulet: FastifyPluginAsync<RivuletOptions | RuntimeServingOptions> = (app, options) =>
  host(app, options, new Connections(app.server));

async function host(
  app: FastifyInstance,
  options: RivuletOptions | RuntimeServingOptions,
  connections: Connections,
): Promise<void> {
  const http = httpLimits(options);
  const isOwn = options.runtime === undefined;
  const runtime =
    options.runtime === undefined
      ? await LocalRuntime.open({ ...options, log: app.log })
      : localRuntime(options.runtime);
  // Registered first: if a later step fails, the runtime still closes its connections, or unlocks its file.
  if (isOwn) app.addHook('onClose', () => runtime.close());
  const { publicUrl } = runtime.base;
  const base = publicPath({ publicUrl }) ?? app.prefix;
  const address = () => ({ origin: originOf(app), prefix: app.prefix });
  runtime.base.addresses.add(address);
  app.addHook('onClose', async () => void runtime.base.addresses.delete(address));
  secure(app);
  refuseForeign(app, { ...options, publicUrl });
  const { engine, registry } = runtime;
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
    if (!stopping && !runtime.stopping && !(isStream && open.full)) return next();
    // An EventSource stops at a 503, but reconnects after a broken connection.
    if (isStream) {
      reply.hijack();
      request.raw.destroy();
      return;
    }
    reply.header('Connection', 'close');
    throw fail('stopping');
  });
  app.addHook('onReady', () => runtime.startEngine());
  // Before the server stops listening: open streams would keep it from ever closing.
  app.addHook('preClose', async () => {
    stopping = true;
    if (isOwn) await runtime.stopEngine();
    else responder.stop();
    connections.close();
  });

  await app.register(FastifySSEPlugin, { retryDelay: false });
  if (options.docs !== false) {
    const agent = registry.list()[0]?.manifest.name ?? 'echo';
    await serveOpenApi(app, { version: version(), server: publicUrl ?? (app.prefix || '/'), base, agent });
  }
  if (options.playground !== false) await servePlayground(app, base);
  await app.register(healthRoutes, { engine });
  await app.register(acp, { engine, responder, base });
}

/**
 * A server of agents, or of a runtime that the caller uses as well; call `listen` on what it resolves to.
 * @throws Error with one line that says which agent or store is wrong, and why
 */
export async function createServer({
  logger = false,
  ...options
}: ServerOptions | RuntimeServerOptions): Promise<FastifyInstance> {
  const { maxConnections, headersTimeout, receiveTimeout, keepAliveTimeout } = connectionLimits(options);
  const checkEvery = Math.min(5_000, headersTimeout, receiveTimeout, keepAliveTimeout);
  const app = Fastify({
    logger: logger === false ? false : withoutQueries(logger === true ? {} : logger),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1000 },
    bodyLimit: httpLimits(options).bodyLimit,
    // None: Fastify's ten seconds would also limit the time in which the server stops, and so `shutdownGrace`.
    pluginTimeout: 0,
    // The time to receive a request: an unfinished one must not hold a socket for ever. It does not limit responses.
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
  // Node responds 417 to an unknown `Expect` header. This listener handles the request like any other.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  try {
    await app.register((inner) => host(inner, options, connections));
  } catch (error) {
    await app.close();
    throw error;
  }
  return app;
}

/** Lines about requests have their paths only: a query may hold a token or what a client asked for. */
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

function localRuntime(runtime: Runtime): LocalRuntime {
  if (runtime instanceof LocalRuntime) return runtime;
  throw new TypeError('runtime: expected one that createRuntime made; serve agents with createServer({ agents })');
}

function originOf(app: FastifyInstance): string | undefined {
  const address = app.server.address();
  if (address === null || typeof address === 'string') return undefined;
  const host = ['0.0.0.0', '::'].includes(address.address) ? 'localhost' : address.address;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
