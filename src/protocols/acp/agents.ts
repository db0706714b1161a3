import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AccessOf } from '../../http/caller.ts';
import { AgentManifest } from '../../schema/agent.ts';
import { AgentParams, AgentsQuery, AgentsResponse, PingResponse } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';

/** The agents of the service and their manifests. */
export const agentRoutes: FastifyPluginAsyncTypebox<{ access: AccessOf }> = async (app, { access }) => {
  app.get(
    '/ping',
    {
      config: { open: true },
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
      config: { scope: 'agents:read' },
      schema: {
        operationId: 'listAgents',
        summary: 'List agents',
        tags: ['agents'],
        querystring: AgentsQuery,
        response: { 200: AgentsResponse, 422: ErrorBody },
      },
    },
    async (request) => {
      const { limit = 10, offset = 0 } = request.query;
      return { agents: await access(request).manifests(limit, offset) };
    },
  );

  app.get(
    '/agents/:name',
    {
      config: { scope: 'agents:read' },
      schema: {
        operationId: 'getAgent',
        summary: 'Read the manifest of an agent',
        tags: ['agents'],
        params: AgentParams,
        response: { 200: AgentManifest, 404: ErrorBody },
      },
    },
    (request) => access(request).manifest(request.params.name),
  );
};
