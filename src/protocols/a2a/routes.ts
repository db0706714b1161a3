import { createHash } from 'node:crypto';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import { named } from '../../http/plugin-name.ts';
import { matchesEtag } from '../../http/requests/negotiation.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import { AgentParams } from '../../schema/api.ts';
import { answerErrors, type ProtocolOptions } from '../protocol.ts';
import { agentCard, type CardOptions, cardPath, serverCard } from './agent-card.ts';
import { sendRestError } from './errors.ts';
import { jsonRpcRoutes } from './json-rpc.ts';
import { manifestOf, type Service } from './operations.ts';
import { restRoutes } from './rest.ts';

/** A2A: an agent is an address with a card, a run is a task. */
export const a2aRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  const { responder } = options;
  answerErrors(app, options, sendRestError);
  const service: Service = {
    responder,
    extendedCard: async ({ own, agent, reply }) => {
      if (options.credentials.length === 0) {
        throw fail('operation_unsupported', 'The agent card has all: this server has no extended one');
      }
      const card = cardOptions(options, reply.request);
      return agent === undefined ? serverCard(manifestsOf(own), card) : agentCard(manifestOf(own, agent), card);
    },
  };
  const bindings = { ...options, service, prefix: '' };
  await app.register(named(jsonRpcRoutes, 'a2a-json-rpc'), bindings);
  await restRoutes(app, bindings);
  await agentCardRoutes(app, options);
};

/** The card of each agent. Without credentials, an agent that asks for scopes has none: see the extended card. */
const agentCardRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  const since = new Date().toUTCString();
  app.get(
    `/:name/${cardPath}`,
    { config: { open: true }, schema: { hide: true, params: AgentParams } },
    async (request, reply) => {
      const { name } = request.params;
      const manifest = manifestOf(options.visitor, name);
      if (!options.visitor.mayRun(name)) throw fail('agent_unknown', name);
      return sendCard(reply, agentCard(manifest, cardOptions(options, request)), changedAt(manifest, since));
    },
  );
};

/** The card of the server, at the address where the protocol looks for it. */
export const serverCardRoutes: FastifyPluginAsync<ProtocolOptions> = async (app, options) => {
  const since = new Date().toUTCString();
  app.get(`/${cardPath}`, { config: { open: true }, schema: { hide: true } }, async (request, reply) => {
    const manifests = manifestsOf(options.visitor);
    return sendCard(reply, serverCard(manifests, cardOptions(options, request)), since);
  });
};

// Cards have no figures of runs: they are public, and cost no read of the store.

const manifestsOf = (own: Access): AgentManifest[] => own.tools().filter(({ name }) => own.mayRun(name));

const cardOptions = ({ url, credentials, visitor, prefix }: ProtocolOptions, request: FastifyRequest): CardOptions => ({
  url: `${url(request)}${prefix}/`,
  credentials,
  canPush: visitor.canPush,
});

const changedAt = ({ metadata: { updated_at, created_at } = {} }: AgentManifest, since: string): string => {
  const at = updated_at ?? created_at;
  return at === undefined ? since : new Date(at).toUTCString();
};

/** Caches keep a card for five minutes, and then ask whether it is still the same. */
function sendCard(reply: FastifyReply, card: object, changed: string): FastifyReply {
  const body = JSON.stringify(card);
  const tag = `"${createHash('sha1').update(body).digest('base64url')}"`;
  reply.headers({ 'Cache-Control': 'public, max-age=300', ETag: tag, 'Last-Modified': changed });
  if (matchesEtag(reply.request.headers['if-none-match'], tag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(body);
}
