import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { TSchema } from '@sinclair/typebox';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifySchemaCompiler,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import { fail } from '../core/errors.ts';
import { operator, visitor } from '../core/principal.ts';
import { retry } from '../core/timing.ts';
import { compile } from '../core/validate.ts';
import { newId } from '../engine/ids.ts';
import { authenticate, credentialKinds } from '../http/auth/authenticate.ts';
import type { AuthOptions } from '../http/auth/credentials.ts';
import type { StreamTickets } from '../http/auth/stream-ticket.ts';
import { Connections } from '../http/connections.ts';
import { healthRoutes } from '../http/health.ts';
import { acceptJson } from '../http/limits/body.ts';
import { HeldReads } from '../http/limits/held-reads.ts';
import { type ConnectionLimits, connectionLimits, type HttpLimits, httpLimits } from '../http/limits/limits.ts';
import { mostHeld, shedRuns } from '../http/limits/overload.ts';
import { limitOwners } from '../http/limits/owner-limits.ts';
import { safeLogger } from '../http/logger.ts';
import type { Metrics } from '../http/metrics/metrics.ts';
import type { MetricsAddress } from '../http/metrics/metrics-server.ts';
import { serveOpenApi } from '../http/openapi/openapi.ts';
import { networkRule } from '../http/outbound/address-guard.ts';
import type { WebhookSecrets } from '../http/outbound/webhook-secrets.ts';
import { answerOrigins, type NameOptions, publicPath, refuseForeign } from '../http/pages/allowed-origins.ts';
import { forbidCaching } from '../http/pages/caching.ts';
import { servePages } from '../http/pages/pages.ts';
import { secure } from '../http/pages/security-headers.ts';
import { named } from '../http/plugin-name.ts';
import { recordRequests } from '../http/request-log.ts';
import { identifyCallers } from '../http/requests/caller.ts';
import { type AnswerBelow, handleError, refuseUnknown } from '../http/requests/errors.ts';
import { fromTexts } from '../http/requests/from-texts.ts';
import { readsStream } from '../http/requests/negotiation.ts';
import { allowCloseCallbacks } from '../http/requests/once-closed.ts';
import { readableUrl, refuseUnreadable } from '../http/requests/readable-path.ts';
import { Responder } from '../http/requests/respond.ts';
import { reportUnknownFields } from '../http/requests/unknown-fields.ts';
import { serverUrl } from '../http/server-url.ts';
import { reviewStreams, StreamMonitor } from '../http/sse/stream-monitor.ts';
import { dropStalledReaders } from '../http/stalled-readers.ts';
import { type TrafficObserver, unobserved } from '../http/traffic.ts';
import { version } from '../http/version.ts';
import { agentRoutes } from '../protocols/acp/agents.ts';
import { runRoutes } from '../protocols/acp/runs.ts';
import { sessionRoutes } from '../protocols/acp/sessions.ts';
import { streamTicketRoutes } from '../protocols/acp/stream-tickets.ts';
import { webhookRoutes } from '../protocols/acp/webhooks.ts';
import type { ProtocolAddress, ProtocolOptions } from '../protocols/protocol.ts';
import { protocolAddresses, type ServedProtocols, serveProtocols } from './protocols.ts';
import { type HostOptions, LocalRuntime, type Runtime } from './runtime.ts';

/** How a runtime is served. */
export interface ServingOptions extends Partial<HttpLimits>, Omit<NameOptions, 'publicUrl'> {
  /** How callers are authenticated. Default: not at all, every caller is the operator. */
  readonly auth?: AuthOptions;
  /** Serve `/openapi.json` and `/docs`. Default true. */
  readonly docs?: boolean;
  /** The protocols that are served beside this server's own API. Default: all, at `/ai`, `/ag-ui`, `/v1` and `/a2a`. */
  readonly protocols?: ServedProtocols;
  /** Serve the playground at `/`. Default true. */
  readonly playground?: boolean;
  /**
   * Metrics for Prometheus: true serves them at `/metrics` of this server, an address at a port of their own. Default
   * none.
   */
  readonly metrics?: true | MetricsAddress;
}

/** Agents to serve. The server makes a runtime for them, and closes it. The host of `publicUrl` is one of its names. */
export interface RivuletOptions extends HostOptions, ServingOptions {
  readonly runtime?: never;
  /**
   * When this process begins to execute runs, first those that an earlier one left: when the server is `ready` (default), and
   * so before it listens, or when it is `listening`. With that, a run whose agent holds the event loop does not keep the server
   * from listening; `app.ready()` and `app.inject()` alone then execute only runs that this process creates.
   */
  readonly executeFrom?: 'ready' | 'listening';
}

/** A runtime to serve. The caller has made it with options of its own, and closes it after the server. */
export interface RuntimeServingOptions
  extends ServingOptions,
    Partial<Record<keyof HostOptions | 'executeFrom', never>> {
  readonly runtime: Runtime;
}

export interface ListenerOptions extends Partial<ConnectionLimits> {
  /** As Fastify's: false (default), true, or pino's options. */
  readonly logger?: FastifyServerOptions['logger'];
  /**
   * Addresses and networks of the proxies in front, such as `10.0.0.0/8`. The address of a client is then that of
   * `X-Forwarded-For`, which any other client could choose. Default none.
   */
  readonly trustProxy?: readonly string[];
}

export interface ServerOptions extends RivuletOptions, ListenerOptions {}

export interface RuntimeServerOptions extends RuntimeServingOptions, ListenerOptions {}

/**
 * Rivulet as a Fastify plugin, to host agents inside an existing app:
 * `await app.register(rivulet, { prefix: '/acp', agents: [echo] })`.
 * Its error handling, parsers and validators stay inside.
 */
export const rivulet: FastifyPluginAsync<RivuletOptions | RuntimeServingOptions> = named(
  (app: FastifyInstance, options: RivuletOptions | RuntimeServingOptions) =>
    host(app, options, new Connections(app.server)),
  'rivulet',
);

async function host(
  app: FastifyInstance,
  options: RivuletOptions | RuntimeServingOptions,
  connections: Connections,
  lines?: FastifyBaseLogger,
): Promise<void> {
  const http = httpLimits(options);
  const isOwn = options.runtime === undefined;
  const runtime = options.runtime === undefined ? await openRuntime(app, options) : localRuntime(options.runtime);
  // Registered first: if a later step fails, the runtime still closes its connections, or unlocks its file.
  if (isOwn) app.addHook('onClose', () => runtime.close());
  const { engine, registry, quotas, secrets, traces } = runtime.host;
  const { publicUrl, addresses } = runtime.host.base;
  const base = publicPath({ publicUrl }) ?? app.prefix;
  const url = serverUrl({ publicUrl, prefix: app.prefix });
  const address = () => ({ origin: originOf(app), prefix: app.prefix });
  addresses.add(address);
  app.addHook('onClose', async () => void addresses.delete(address));
  const metrics = options.metrics ? await openMetrics(runtime, () => monitor.size) : undefined;
  app.addHook('onClose', async () => metrics?.close());
  const traffic = metrics?.traffic ?? unobserved;
  connections.report(traffic, lines);
  allowCloseCallbacks(app);
  dropStalledReaders(app, http.stalledAfter, traffic);
  recordRequests(app, { traffic, lines, traces });
  secure(app);
  forbidCaching(app);
  refuseForeign(app, { ...options, publicUrl });
  // Before the first route, which is that of preflights: a route has the error handler that was there before it.
  const answerBelow = readRequests(app, http);
  await answerOrigins(app, options.allowedOrigins);
  const access = identifyCallers(app, engine, options.auth !== undefined);
  const { tickets, signatures, holds } = await authenticate(app, options.auth, url, traffic, quotas);
  const monitor: StreamMonitor = new StreamMonitor({ ...http, traffic });
  if (holds !== undefined) reviewStreams(app, monitor, holds);
  const overload = shedRuns(app, http);
  new HeldReads({ limits: http, overload, most: mostHeld(http), traffic }).watch(app);
  // Without authentication, no caller is an owner.
  if (options.auth !== undefined) limitOwners(app, { engine, quotas, limits: http, monitor, traffic });
  refuseUnreadable(app);
  const responder = new Responder({ monitor, traffic, retry: http.retry });
  let stopping = false;
  const isStopping = (): boolean => stopping || runtime.stopping;
  const checkReady = async (): Promise<void> => {
    if (isStopping()) throw fail('stopping');
    overload.refuse();
    await engine.ready();
  };
  refuseWhile(app, isStopping, monitor, traffic);
  const isWaiting = options.executeFrom === 'listening';
  app.addHook('onReady', () => (isWaiting ? runtime.connectEngine() : runtime.startEngine()));
  if (isWaiting) app.addHook('onListen', async () => void executeRuns(runtime, app.log, isStopping));
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
    await serveOpenApi(app, { version: version(), url, secured: options.auth !== undefined, agents });
  }
  await servePages(app, { base, playground: options.playground !== false, docs: options.docs !== false });
  const protocols = protocolAddresses(options.protocols);
  await serveOwnApi(app, { access, responder, url, base, protocols, tickets, checkReady, secrets });
  await serveProtocols(app, options.protocols, {
    access,
    responder,
    limits: http,
    visitor: engine.as(options.auth === undefined ? operator : visitor),
    credentials: credentialKinds(options.auth),
    base,
    url,
    signatures,
    answerBelow,
    version: version(),
  });
  if (metrics !== undefined && options.metrics) await serveMetrics(app, metrics, options.metrics, checkReady);
}

/** The runtime of a server that is given none. */
const openRuntime = (app: FastifyInstance, options: RivuletOptions): Promise<LocalRuntime> =>
  LocalRuntime.open({
    captureContent: options.auth === undefined,
    ...options,
    // Fastify's logger that logs nothing has no level; without it, no lines are made.
    ...('level' in app.log && { log: app.log }),
  });

/** Starts to execute runs, again and again where the store does not answer. Never rejects. */
async function executeRuns(
  runtime: LocalRuntime,
  log: Pick<FastifyBaseLogger, 'error'>,
  isStopping: () => boolean,
): Promise<void> {
  const again = (err: unknown): boolean => {
    if (!isStopping()) log.error({ err }, 'runs cannot be executed so far; will retry');
    return !isStopping();
  };
  await retry(() => runtime.startEngine(), { again }).catch(() => undefined);
}

interface OwnRoutes extends Pick<ProtocolOptions, 'access' | 'responder' | 'url' | 'base'> {
  readonly protocols: readonly ProtocolAddress[];
  readonly tickets: StreamTickets | undefined;
  readonly checkReady: () => Promise<void>;
  readonly secrets: WebhookSecrets | undefined;
}

/** The server's own API. The routes are called, not registered, so that the start makes no context for each. */
async function serveOwnApi(app: FastifyInstance, options: OwnRoutes): Promise<void> {
  const { secrets } = options;
  const typed = app.withTypeProvider<TypeBoxTypeProvider>();
  await healthRoutes(typed, options);
  agentRoutes(app, options);
  runRoutes(app, options);
  await streamTicketRoutes(typed, options);
  sessionRoutes(app, options);
  if (secrets !== undefined) webhookRoutes(app, { ...options, secrets });
}

async function openMetrics({ host }: LocalRuntime, openStreams: () => number): Promise<Metrics> {
  // Only then: a server without metrics starts without prom-client.
  const { Metrics } = await import('../http/metrics/metrics.ts');
  const { engine, registry, storeKind } = host;
  return new Metrics(engine, registry, { version: version(), store: storeKind, openStreams });
}

/** Serves metrics at the server's own port, or at an address of their own from the start to the end of the server. */
async function serveMetrics(
  app: FastifyInstance,
  metrics: Metrics,
  where: true | MetricsAddress,
  checkReady: () => Promise<void>,
): Promise<void> {
  const { listenForMetrics, metricsRoutes } = await import('../http/metrics/metrics-server.ts');
  if (where === true) return void (await app.register(metricsRoutes, { metrics }));
  let listener: FastifyInstance | undefined;
  app.addHook('onReady', async () => {
    listener = await listenForMetrics(metrics, checkReady, where);
    app.log.info(`the metrics are at ${listener.listeningOrigin}/metrics`);
  });
  app.addHook('onClose', async () => listener?.close());
}

/** How requests are parsed, checked and refused; how answers are written. Returns how prefixes answer their own. */
function readRequests(app: FastifyInstance, limits: HttpLimits): AnswerBelow {
  app.setValidatorCompiler(validatorCompiler);
  // Responses are made by us from what the store keeps; a schema could only drop fields from them.
  app.setSerializerCompiler(() => JSON.stringify);
  const answerBelow = refuseUnknown(app);
  acceptJson(app, limits);
  reportUnknownFields(app);
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= limits.bodyLimit;
  });
  return answerBelow;
}

/** Refuses requests while the server stops, and streams while there are too many. */
function refuseWhile(
  app: FastifyInstance,
  isStopping: () => boolean,
  monitor: StreamMonitor,
  traffic: TrafficObserver,
): void {
  app.addHook('onRequest', (request, reply, next) => {
    if (!isStopping() && !(monitor.full && readsStream(request))) return next();
    // An EventSource stops at a 503, but reconnects after a broken connection.
    if (readsStream(request)) {
      traffic.onStreamDropped(isStopping() ? 'stopping' : 'limit');
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
  trustProxy = [],
  ...options
}: ServerOptions | RuntimeServerOptions): Promise<FastifyInstance> {
  const { maxConnections, connectionsPerAddress, ...times } = connectionLimits(options);
  const { headersTimeout, receiveTimeout, keepAliveTimeout } = times;
  const checkEvery = Math.min(5_000, headersTimeout, receiveTimeout, keepAliveTimeout);
  const app = Fastify({
    logger: logger === false ? false : safeLogger(logger === true ? {} : logger),
    // `recordRequests` has a line for each request.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // The id of a request is for its log lines. Without them, Fastify's own counter costs less.
    ...(logger !== false && { genReqId: newId }),
    trustProxy: trustProxy.length > 0 && [...trustProxy],
    // No limit: Fastify would refuse a longer part of a path before any hook. Node limits the whole path.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: Number.MAX_SAFE_INTEGER },
    rewriteUrl: readableUrl,
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
  if (connectionsPerAddress > 0) {
    connections.limitByAddress(connectionsPerAddress, networkRule(trustProxy, 'trustProxy'));
  }
  app.server.maxConnections = maxConnections;
  // Node responds 417 to an unknown `Expect` header. This listener handles the request like any other.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  const lines = logger === false ? undefined : app.log;
  try {
    await app.register(named((inner: FastifyInstance) => host(inner, options, connections, lines), 'rivulet'));
  } catch (error) {
    await app.close();
    throw error;
  }
  return app;
}

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

const places: Record<string, string> = { params: 'path', querystring: 'query', headers: 'headers' };

/**
 * Compiles Fastify's validators at start, from the same TypeBox schemas as the types and the documentation. Values of
 * URLs and headers are strings, so they are converted first where the schema expects another type. Bodies are not
 * converted.
 */
const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isBody = httpPart === undefined || httpPart === 'body';
  const validate = compile(schema, isBody ? 'body' : (places[httpPart] ?? httpPart));
  return (value: unknown) => {
    try {
      if (isBody) {
        if (value === undefined || value === null) throw fail('body_not_json', 'it is empty');
        return { value: validate(value) };
      }
      return { value: validate(fromTexts(schema, Object(value))) };
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) };
    }
  };
};
