import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { sendJson } from '../../http/requests/respond.ts';
import type { AgentManifest } from '../../schema/agent.ts';
import { AgentParams } from '../../schema/api.ts';
import { answerErrors, type ProtocolOptions } from '../protocol.ts';
import { chatRoutes } from './chat-completions.ts';
import { sendError } from './errors.ts';
import { responseEnding, responseReading } from './response-by-id.ts';
import { seconds } from './response-object.ts';
import { responseCreation } from './responses.ts';

const modelOf = ({ name, metadata }: AgentManifest) => ({
  id: name,
  object: 'model',
  created: metadata?.created_at === undefined ? 0 : seconds(metadata.created_at),
  owned_by: metadata?.author?.name ?? 'rivulet',
});

/** Agents as models. */
const modelRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, { access }) => {
  app.get('/models', { config: { scope: 'agents:read' }, schema: { hide: true } }, async (request, reply) => {
    const agents = await access(request).manifests(Number.MAX_SAFE_INTEGER, 0);
    return sendJson(reply, JSON.stringify({ object: 'list', data: agents.map(modelOf) }));
  });

  app.get(
    '/models/:name',
    { config: { scope: 'agents:read' }, schema: { hide: true, params: AgentParams } },
    async (request, reply) =>
      sendJson(reply, JSON.stringify(modelOf(await access(request).manifest(request.params.name)))),
  );
};

/** OpenAI Responses and Chat Completions. */
export const openAiRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  answerErrors(app, options, (reply, answer) => sendError(reply, answer, `${app.prefix}/models`));
  await responseCreation(app, options);
  await responseReading(app, options);
  await responseEnding(app, options);
  await chatRoutes(app, options);
  await modelRoutes(app, options);
};
