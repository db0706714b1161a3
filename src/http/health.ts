import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { HealthResponse } from '../schema/api.ts';
import { ErrorBody } from '../schema/error.ts';

/**
 * Health checks for load balancers and orchestrators. `checkReady` rejects while the process should get no requests.
 */
export const healthRoutes: FastifyPluginAsyncTypebox<{ checkReady: () => Promise<void> }> = async (
  app,
  { checkReady },
) => {
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
      await checkReady();
      return { status: 'ready' as const };
    },
  );
};
