import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { KindGuard, type TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyRequest,
  type FastifySchemaCompiler,
  type FastifyServerOptions,
} from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import { fail } from './core/errors.ts';
import { compile } from './core/validate.ts';
import type { Engine } from './engine/engine.ts';
import { type NameOptions, publicPath, refuseForeign } from './http/allowed-origins.ts';
import { authenticate } from './http/auth/authenticate.ts';
import type { AuthOptions } from './http/auth/credentials.ts';
import { acceptJson } from './http/body.ts';
import { identifyCallers } from './http/caller.ts';
import { Connections } from './http/connections.ts';
import { handleError, pathOf, refuseUnknown } from './http/errors.ts';
import { type ConnectionLimits, connectionLimits, type HttpLimits, httpLimits } from './http/limits.ts';
import { wantsStream } from './http/negotiation.ts';
import { serveOpenApi } from './http/openapi.ts';
import { limitOwners } from './http/owner-limits.ts';
import { servePages } from './http/pages.ts';
import { Responder } from './http/respond.ts';
import { secure } from './http/security-headers.ts';
import { StreamMonitor } from './http/sse/stream-monitor.ts';
import { reportUnknownFields } from './http/unknown-fields.ts';
import { agentRoutes } from './protocols/acp/agents.ts';
import { principalRoutes } from './protocols/acp/principals.ts';
import { eventRoutes, runRoutes, storedRunRoutes } from './protocols/acp/runs.ts';
import { resourceRoutes, sessionRoutes } from './protocols/acp/sessions.ts';
import { streamTicketRoutes } from './protocols/acp/stream-tickets.ts';
import { webhookRoutes } from './protocols/acp/webhooks.ts';
import { type HostOptions, LocalRuntime, type Runtime } from './runtime.ts';
import { HealthResponse } from './schema/api.ts';
import { ErrorBody } from './schema/error.ts';
import { version } from './version.ts';

/** How a runtime is served. */
export interface ServingOptions extends Partial<HttpLimits>, Omit<NameOptions, 'publicUrl'> {
  /** How callers are authenticated. Default: not at all, every caller is the operator. */
  readonly auth?: AuthOptions;
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
  const { engine, registry } = runtime;
  const { publicUrl } = runtime.base;
  const base = publicPath({ publicUrl }) ?? app.prefix;
  const address = () => ({ origin: originOf(app), prefix: app.prefix });
  runtime.base.addresses.add(address);
  app.addHook('onClose', async () => void runtime.base.addresses.delete(address));
  secure(app);
  refuseForeign(app, { ...options, publicUrl });
  const access = identifyCallers(app, engine, options.auth !== undefined);
  const tickets = authenticate(app, options.auth, publicUrl);
  const monitor = new StreamMonitor(http);
  limitOwners(app, { engine, quotas: runtime.quotas, limits: http, monitor });
  const responder = new Responder({ monitor, retry: http.retry });
  readRequests(app, http);
  let stopping = false;
  refuseWhile(app, (isStream) => stopping || runtime.stopping || (isStream && monitor.full));
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
    const agents = registry.list().map(({ manifest }) => manifest.name);
    await serveOpenApi(app, { version: version(), publicUrl, secured: options.auth !== undefined, agents });
  }
  await servePages(app, { base, playground: options.playground !== false, docs: options.docs !== false });
  await app.register(healthRoutes, { engine });
  await app.register(agentRoutes, { access });
  await app.register(runRoutes, { access, responder, base });
  await app.register(storedRunRoutes, { access, responder });
  await app.register(eventRoutes, { access, responder });
  await app.register(streamTicketRoutes, { access, tickets, base });
  await app.register(sessionRoutes, { access });
  await app.register(resourceRoutes, { access });
  await app.register(principalRoutes, { access });
  if (runtime.secrets !== undefined) await app.register(webhookRoutes, { access, secrets: runtime.secrets });
}

/** How requests are parsed, checked and refused; how answers are written. */
function readRequests(app: FastifyInstance, limits: HttpLimits): void {
  app.setValidatorCompiler(validatorCompiler);
  // Responses are made by us from what the store keeps; a schema could only drop fields from them.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler(handleError);
  refuseUnknown(app);
  acceptJson(app, limits);
  reportUnknownFields(app);
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= limits.bodyLimit;
  });
}

/** Refuses requests while the server stops, and streams while there are too many. */
function refuseWhile(app: FastifyInstance, isRefused: (isStream: boolean) => boolean): void {
  app.addHook('onRequest', (request, reply, next) => {
    const isStream = request.method === 'GET' && wantsStream(request);
    if (!isRefused(isStream)) return next();
    // An EventSource stops at a 503, but reconnects after a broken connection.
    if (isStream) {
      reply.hijack();
      request.raw.destroy();
      return;
    }
    reply.header('Connection', 'close');
    throw fail('stopping');
  });
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

/** Health checks for load balancers and orchestrators. */
const healthRoutes: FastifyPluginAsyncTypebox<{ engine: Engine }> = async (app, { engine }) => {
  app.get(
    '/health',
    {
      config: { open: true },
      schema: {
        operationId: 'getHealth',
        summary: 'Liveness check',
        tags: ['service'],
        response: { 200: HealthResponse },
      },
    },
    async () => ({ status: 'ok' as const }),
  );

  app.get(
    '/ready',
    {
      config: { open: true },
      schema: {
        operationId: 'getReadiness',
        summary: 'Readiness check',
        tags: ['service'],
        response: { 200: HealthResponse, 503: ErrorBody },
      },
    },
    async () => {
      await engine.ready();
      return { status: 'ready' as const };
    },
  );
};

const places: Record<string, string> = { params: 'path', querystring: 'query', headers: 'headers' };

/**
 * Compiles Fastify's validators at start, from the same TypeBox schemas as the types and the documentation. Values of
 * URLs and headers are strings, so they are converted first where the schema expects another type. Bodies are not
 * converted.
 */
const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isBody = httpPart === undefined || httpPart === 'body';
  const validate = compile(schema, isBody ? 'body' : (places[httpPart] ?? httpPart));
  const isText = !isBody && Object.values<TSchema>(schema.properties).every(isPlainText);
  return (value: unknown) => {
    try {
      if (isBody) {
        if (value === undefined || value === null) throw fail('body_not_json', 'it is empty');
        return { value: validate(value) };
      }
      if (isText) return { value: validate(value) };
      return { value: validate(Value.Convert(schema, Value.Default(schema, { ...Object(value) }))) };
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) };
    }
  };
};

/** Whether a value of a URL or a header needs neither conversion nor a default. */
function isPlainText(property: TSchema): boolean {
  if (KindGuard.IsUnion(property)) return property.anyOf.every(isPlainText);
  const isText = KindGuard.IsString(property) || (KindGuard.IsLiteral(property) && typeof property.const === 'string');
  return isText && property.default === undefined;
}
