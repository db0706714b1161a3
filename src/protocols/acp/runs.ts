import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { fail } from '../../core/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import { type Responder, sendJson } from '../../http/respond.ts';
import { EventsQuery, RunCreateRequest, RunEventsResponse, RunParams, RunResumeRequest } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Event } from '../../schema/event.ts';
import { Run } from '../../schema/run.ts';

// What a mode answers; one object, because creating and resuming answer alike.
const modes = {
  200: {
    description: 'sync: the Run, final or awaiting. stream: its events, until then',
    content: { 'application/json': { schema: Run }, 'text/event-stream': { schema: Event } },
  },
  202: { description: 'async: the Run as it begins', content: { 'application/json': { schema: Run } } },
};

/** Runs: each answer is a reader of the same log. */
export const runRoutes: FastifyPluginAsyncTypebox<{ engine: Engine; responder: Responder }> = async (
  app,
  { engine, responder },
) => {
  app.post(
    '/runs',
    {
      schema: {
        summary: 'Run an agent',
        tags: ['runs'],
        body: RunCreateRequest,
        response: { ...modes, 400: ErrorBody, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ body }, reply) => {
      const begun = await engine.create(body);
      reply.header('Location', `${app.prefix}/runs/${begun.run_id}`);
      return responder.begun(reply, begun, body.mode ?? 'sync');
    },
  );

  app.get(
    '/runs/:run_id',
    {
      schema: {
        summary: 'A run as it is now',
        tags: ['runs'],
        params: RunParams,
        response: { 200: Run, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params }, reply) => sendJson(reply, await engine.run(params.run_id.toLowerCase())),
  );

  app.post(
    '/runs/:run_id',
    {
      schema: {
        summary: 'Answer what an awaiting run asked',
        tags: ['runs'],
        params: RunParams,
        body: RunResumeRequest,
        response: { ...modes, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params, body }, reply) => {
      const begun = await engine.resume(params.run_id.toLowerCase(), body.await_resume);
      return responder.begun(reply, begun, body.mode);
    },
  );

  app.post(
    '/runs/:run_id/cancel',
    {
      schema: {
        summary: 'Cancel a run',
        tags: ['runs'],
        params: RunParams,
        response: { 202: Run, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params }, reply) => sendJson(reply.code(202), await engine.cancel(params.run_id.toLowerCase())),
  );

  app.get(
    '/runs/:run_id/events',
    {
      // A HEAD of a stream without an end would never be answered.
      exposeHeadRoute: false,
      schema: {
        summary: 'The events of a run: so far, or with Accept: text/event-stream from a cursor on, live',
        tags: ['runs'],
        params: RunParams,
        querystring: EventsQuery,
        response: {
          200: {
            description: 'The events after the cursor',
            content: { 'application/json': { schema: RunEventsResponse }, 'text/event-stream': { schema: Event } },
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
};

const wantsStream = ({ headers }: FastifyRequest): boolean => headers.accept?.includes('text/event-stream') ?? false;

/** The header wins: a browser that reconnects keeps the `?after=` of its first connection. */
function cursorOf({ headers }: FastifyRequest, query: string | undefined): number {
  const header = headers['last-event-id'];
  const [name, given] = header === undefined || header === '' ? ['after', query] : ['Last-Event-ID', String(header)];
  if (given === undefined) return 0;
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', name, given.slice(0, 100));
  return Number(given);
}
