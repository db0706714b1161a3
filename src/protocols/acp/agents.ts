import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { AccessOf } from '../../http/requests/caller.ts';
import type { ServerUrl } from '../../http/server-url.ts';
import { AgentManifest } from '../../schema/agent.ts';
import { AgentParams, AgentsQuery, AgentsResponse, PingResponse } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import type { ProtocolAddress } from '../protocol.ts';

interface AgentOptions {
  readonly access: AccessOf;
  readonly url: ServerUrl;
  /** The protocols that are served beside this one. */
  readonly protocols: readonly ProtocolAddress[];
}

/** The agents of the service and their manifests, with the addresses at which clients find them. */
export const agentRoutes: FastifyPluginAsyncTypebox<AgentOptions> = async (app, { access, url, protocols }) => {
  const withAddresses = (request: FastifyRequest, manifest: AgentManifest): AgentManifest => {
    const server = url(request);
    const others = protocols.map(({ protocol, path }) => ({
      protocol,
      url: `${server}${path.replace('{agent}', manifest.name)}`,
    }));
    return { ...manifest, addresses: [{ protocol: 'acp', url: server }, ...others] };
  };

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
      const manifests = await access(request).manifests(limit, offset);
      return { agents: manifests.map((manifest) => withAddresses(request, manifest)) };
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
    async (request) => withAddresses(request, await access(request).manifest(request.params.name)),
  );
};
