import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Engine } from '../engine/engine.ts';
import { HealthResponse } from '../schema/api.ts';
import { ErrorBody } from '../schema/error.ts';

/** Health checks for load balancers and orchestrators. */
export const healthRoutes: FastifyPluginAsyncTypebox<{ engine: Engine }> = async (app, { engine }) => {
  app.get(
    '/health',
    {
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
      schema: {
        operationId: 'getReadiness',
        summary: 'Readiness check: 503 while the store does not answer or the server stops',
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
