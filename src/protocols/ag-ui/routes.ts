import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import { lastEventIdIn } from '../../http/requests/run-requests.ts';
import { afterFrame, beginning, type Position } from '../../http/sse/projection.ts';
import { RunHeaders } from '../../schema/api.ts';
import { answerErrors, type ProtocolOptions } from '../protocol.ts';
import { runError } from './projection.ts';
import { RunAgentInput } from './run-input.ts';
import { AgUiStreams } from './streams.ts';

const agentParams = Type.Object({ agent: Type.String() });
const runParams = Type.Object({ agent: Type.String(), runId: Type.String({ maxLength: 255 }) });
const joinQuery = Type.Object({
  runId: Type.String({ minLength: 1, maxLength: 255, description: 'the runId of a request, or a run_id' }),
  offset: Type.Optional(Type.String({ description: '-1 for all events, or the id of the last event of the client' })),
});
const reattachQuery = Type.Object({
  threadId: Type.Optional(Type.String({ maxLength: 1_000 })),
  protocolVersion: Type.Optional(Type.String({ maxLength: 20 })),
});

/** AG-UI: an agent is an address to post to; a run of the client is a turn of a run here. */
export const agUiRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  const { access, responder } = options;
  const streams = new AgUiStreams(responder);
  answerErrors(app, options, (reply, { body }) =>
    reply.type('application/json; charset=utf-8').send(JSON.stringify(runError(body))),
  );

  app.post(
    '/:agent',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: { hide: true, params: agentParams, headers: RunHeaders, body: RunAgentInput },
    },
    async (request, reply) => {
      const own = access(request);
      responder.admit(own, 'stream');
      const posted = { agent: request.params.agent, body: request.body, headers: request.headers };
      const cursor = lastEventId(request);
      if (cursor !== undefined) return streams.again(reply, own, posted, cursor);
      return streams.begin(reply, own, posted);
    },
  );

  // As TanStack AI joins a run.
  app.get(
    '/:agent',
    {
      exposeHeadRoute: false,
      config: { scope: 'runs:read', streams: true },
      schema: { hide: true, params: agentParams, querystring: joinQuery },
    },
    async (request, reply) => {
      const own = access(request);
      responder.admit(own, 'stream');
      const { runId, offset = '-1' } = request.query;
      const run = await streams.find(own, request.params.agent, runId);
      const cursor = lastEventId(request) ?? (offset === '-1' ? undefined : afterFrame('offset', offset));
      return streams.rest(reply, own, { ...run, runId }, cursor ?? beginning);
    },
  );

  app.get(
    '/:agent/runs/:runId',
    {
      exposeHeadRoute: false,
      config: { scope: 'runs:read', streams: true },
      schema: { hide: true, params: runParams, querystring: reattachQuery },
    },
    async (request, reply) => {
      const own = access(request);
      responder.admit(own, 'stream');
      const { agent, runId } = request.params;
      const run = { ...(await streams.find(own, agent, runId)), runId, ...request.query };
      const cursor = lastEventId(request);
      const joins = request.headers['x-run-id'] !== undefined;
      if (cursor !== undefined && joins) return streams.rest(reply, own, run, cursor);
      return streams.reattach(reply, own, run, cursor);
    },
  );

  app.post(
    '/:agent/runs/:runId/cancel',
    { config: { scope: 'runs:write' }, schema: { hide: true, params: runParams } },
    async (request, reply) => {
      const own = access(request);
      const { agent, runId } = request.params;
      const { run_id } = await streams.find(own, agent, runId);
      const { status } = JSON.parse(await own.cancel(run_id));
      return reply.code(202).send({ runId, run_id, status });
    },
  );
};

/** @throws RivuletError `cursor_invalid` */
function lastEventId(request: Pick<FastifyRequest, 'headers'>): Position | undefined {
  const id = lastEventIdIn(request);
  return id === undefined ? undefined : afterFrame('Last-Event-ID', id);
}
