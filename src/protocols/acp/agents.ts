import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { AccessOf } from '../../http/requests/caller.ts';
import type { ServerUrl } from '../../http/server-url.ts';
import { AgentManifest } from '../../schema/agent.ts';
import { AgentParams, AgentsQuery, AgentsResponse, PingResponse } from '../../schema/api.ts';
import type { ProtocolAddress } from '../protocol.ts';
import { operation, refusals, serve } from './operation.ts';

interface AgentOptions {
  readonly access: AccessOf;
  readonly url: ServerUrl;
  /** The protocols that are served beside this one. */
  readonly protocols: readonly ProtocolAddress[];
}

const listAgents = operation({
  route: 'GET /agents',
  config: { scope: 'agents:read' },
  summary: 'List agents',
  tags: ['agents'],
  query: AgentsQuery,
  response: { 200: AgentsResponse, ...refusals(422) },
  call: async (access, { query: { limit = 10, offset = 0 } }) => ({ agents: await access.manifests(limit, offset) }),
});

const getAgent = operation({
  route: 'GET /agents/:name',
  config: { scope: 'agents:read' },
  summary: 'Read the manifest of an agent',
  tags: ['agents'],
  params: AgentParams,
  response: { 200: AgentManifest, ...refusals(404) },
  call: (access, { params }) => access.manifest(params.name),
});

/** The operations on the agents of the service. */
export const agentOperations = { listAgents, getAgent };

/** The agents of the service and their manifests, with the addresses at which clients find them. */
export function agentRoutes(app: FastifyInstance, { access, url, protocols }: AgentOptions): void {
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
      schema: { operationId: 'ping', summary: 'Ping', tags: ['service'], response: { 200: PingResponse } },
    },
    async () => ({}),
  );
  serve(app, access, agentOperations, {
    async listAgents(input, { request }, own) {
      const { agents } = await listAgents.call(own, input);
      return { agents: agents.map((manifest) => withAddresses(request, manifest)) };
    },
    getAgent: async (input, { request }, own) => withAddresses(request, await getAgent.call(own, input)),
  });
}
