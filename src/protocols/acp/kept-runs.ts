import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { nameProblem } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import { wantsStream } from '../../http/negotiation.ts';
import { type Responder, sendJson } from '../../http/respond.ts';
import { EventsQuery, RunEventsResponse, RunParams, RunsQuery, RunsResponse } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Run } from '../../schema/run.ts';

/** Runs that there are: listed, read, followed, deleted. */
export const keptRunRoutes: FastifyPluginAsyncTypebox<{ engine: Engine; responder: Responder }> = async (
  app,
  { engine, responder },
) => {
  app.get(
    '/runs',
    {
      schema: {
        operationId: 'listRuns',
        summary: 'List runs without their output, newest first',
        tags: ['runs'],
        querystring: RunsQuery,
        response: { 200: RunsResponse, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ query }, reply) => {
      const { limit = 20, cursor, ...filter } = query;
      const { agent_name } = filter;
      // As everywhere: a name that cannot exist is an agent that is not found. A store might not even take it.
      if (agent_name !== undefined && nameProblem(agent_name) !== undefined) {
        throw fail('agent_unknown', agent_name.slice(0, 100));
      }
      if (filter.session_id !== undefined) filter.session_id = filter.session_id.toLowerCase();
      const { runs, next } = await engine.runs(filter, cursor?.toLowerCase(), limit);
      return sendJson(reply, `{"runs":[${runs.join(',')}]${next === undefined ? '' : `,"next_cursor":"${next}"`}}`);
    },
  );

  app.get(
    '/runs/:run_id',
    {
      schema: {
        operationId: 'getRun',
        summary: 'Read a run as it is now',
        tags: ['runs'],
        params: RunParams,
        response: { 200: Run, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params }, reply) => sendJson(reply, await engine.run(params.run_id.toLowerCase())),
  );

  app.get(
    '/runs/:run_id/events',
    {
      // A HEAD of a stream without an end would never be answered.
      exposeHeadRoute: false,
      schema: {
        operationId: 'listRunEvents',
        summary: 'Read the events of a run: so far, or with Accept: text/event-stream from a cursor on, live',
        tags: ['runs'],
        params: RunParams,
        querystring: EventsQuery,
        response: {
          200: {
            description: 'The events after the cursor',
            content: {
              'application/json': { schema: RunEventsResponse },
              // A stream as a whole is text; each `data` in it is an Event.
              'text/event-stream': { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } },
            },
          },
          204: { description: 'stream: the run is over and the cursor is at its end', type: 'null' },
          400: ErrorBody,
          404: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const run_id = request.params.run_id.toLowerCase();
      const after = cursorOf(request, request.query.after);
      if (wantsStream(request)) return responder.stream(reply, run_id, { after, until: 'final' });
      return responder.list(reply, run_id, after);
    },
  );

  app.delete(
    '/runs/:run_id',
    {
      schema: {
        operationId: 'deleteRun',
        summary: 'Delete a final run, its events and its messages',
        tags: ['runs'],
        params: RunParams,
        response: { 204: { description: 'it is gone', type: 'null' }, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params }, reply) => {
      await engine.remove(params.run_id.toLowerCase());
      return reply.code(204).send();
    },
  );
};

/** The header wins: a browser that reconnects keeps the `?after=` of its first connection. */
function cursorOf({ headers }: FastifyRequest, query: string | undefined): number {
  const header = headers['last-event-id'];
  const [name, given] = header === undefined || header === '' ? ['after', query] : ['Last-Event-ID', String(header)];
  if (given === undefined) return 0;
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', name, given.slice(0, 100));
  return Number(given);
}
