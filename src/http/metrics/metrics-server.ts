import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { healthRoutes } from '../health.ts';
import { refuseForeign } from '../pages/allowed-origins.ts';
import { secure } from '../pages/security-headers.ts';
import { handleError } from '../requests/errors.ts';
import { readableUrl, refuseUnreadable } from '../requests/readable-path.ts';
import type { Metrics } from './metrics.ts';

/** Where a listener for metrics and health checks of its own listens. */
export interface MetricsAddress {
  /** 0 picks a free one. */
  readonly port: number;
  /** Default 127.0.0.1: the names of agents and their rates are not for the public. */
  readonly host?: string;
}

/** `GET /metrics`, for Prometheus. */
export const metricsRoutes: FastifyPluginAsync<{ metrics: Metrics }> = async (app, { metrics }) => {
  app.get('/metrics', { schema: { hide: true }, config: { scope: 'metrics:read' } }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
};

/** Milliseconds; a scrape is small. */
const requestTimeout = 10_000;

/**
 * A server of metrics and health checks only, without authentication, for a port that only the monitoring reaches. A
 * worker, which serves no requests, has no other one.
 */
export async function listenForMetrics(
  metrics: Metrics,
  checkReady: () => Promise<void>,
  { port, host = '127.0.0.1' }: MetricsAddress,
): Promise<FastifyInstance> {
  const app = Fastify({ logger: false, requestTimeout, forceCloseConnections: true, rewriteUrl: readableUrl });
  secure(app);
  // DNS rebinding is a danger where the address is private. Elsewhere Prometheus may use any name of the node.
  refuseForeign(app, { allowedHosts: /^(127\.|localhost$|::1$)/.test(host) ? [] : ['*'] });
  refuseUnreadable(app);
  app.setErrorHandler(handleError);
  await app.register(healthRoutes, { checkReady });
  await app.register(metricsRoutes, { metrics });
  try {
    await app.listen({ port, host });
  } catch (error) {
    await app.close();
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Error(`the metrics cannot be served at port ${port} of ${host} (${code}); choose another port`);
  }
  return app;
}
