import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Engine } from '../../engine/engine.ts';
import { AgentManifest } from '../../schema/agent.ts';
import { AgentParams, AgentsQuery, AgentsResponse, PingResponse } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';

/** The agents of the service and their manifests. */
export const agentRoutes: FastifyPluginAsyncTypebox<{ engine: Engine }> = async (app, { engine }) => {
  app.get(
    '/ping',
    {
      schema: {
        operationId: 'ping',
        summary: 'Ping',
        tags: ['service'],
        response: { 200: PingResponse },
      },
    },
    async () => ({}),
  );

  app.get(
    '/agents',
    {
      schema: {
        operationId: 'listAgents',
        summary: 'List agents',
        tags: ['agents'],
        querystring: AgentsQuery,
        response: { 200: AgentsResponse, 422: ErrorBody },
      },
    },
    async ({ query }) => ({ agents: await engine.manifests(query.limit ?? 10, query.offset ?? 0) }),
  );

  app.get(
    '/agents/:name',
    {
      schema: {
        operationId: 'getAgent',
        summary: 'Read the manifest of an agent',
        tags: ['agents'],
        params: AgentParams,
        response: { 200: AgentManifest, 404: ErrorBody },
      },
    },
    ({ params }) => engine.manifest(params.name),
  );
};
