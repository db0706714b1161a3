import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { nameProblem } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import { isOnDisconnect } from '../../engine/runs/connected-readers.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { wantsStream } from '../../http/negotiation.ts';
import { type Responder, sendJson } from '../../http/respond.ts';
import {
  EventsQuery,
  RunCreateRequest,
  RunEventsResponse,
  RunHeaders,
  RunParams,
  RunResumeRequest,
  RunsQuery,
  RunsResponse,
} from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Run } from '../../schema/run.ts';

// The responses of the modes, which creating and resuming a run share.
const modes = {
  200: {
    description: 'sync: the Run, final or awaiting. stream: its events, until the run is final or awaiting',
    content: {
      'application/json': { schema: Run },
      // The schema of a whole stream is text; each `data` in it is an Event.
      'text/event-stream': { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } },
    },
  },
  202: { description: 'async: the new Run', content: { 'application/json': { schema: Run } } },
};

/** Creates, resumes and cancels runs. */
export const runRoutes: FastifyPluginAsyncTypebox<{ engine: Engine; responder: Responder; base: string }> = async (
  app,
  { engine, responder, base },
) => {
  app.post(
    '/runs',
    {
      schema: {
        operationId: 'createRun',
        summary: 'Run an agent',
        tags: ['runs'],
        headers: RunHeaders,
        body: RunCreateRequest,
        response: { ...modes, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody, 503: ErrorBody },
      },
    },
    async ({ body, headers }, reply) => {
      responder.admit(body.mode ?? 'sync');
      const begun = await engine.create(body, runOptions(headers));
      reply.header('Location', `${base}/runs/${begun.run_id}`);
      return responder.respond(reply, begun, body.mode ?? 'sync');
    },
  );

  app.post(
    '/runs/:run_id',
    {
      schema: {
        operationId: 'resumeRun',
        summary: 'Answer the question of an awaiting run',
        tags: ['runs'],
        params: RunParams,
        headers: RunHeaders,
        body: RunResumeRequest,
        response: { ...modes, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params, body, headers }, reply) => {
      responder.admit(body.mode ?? 'sync');
      const begun = await engine.resume(params.run_id.toLowerCase(), body.await_resume, runOptions(headers));
      return responder.respond(reply, begun, body.mode ?? 'sync');
    },
  );

  app.post(
    '/runs/:run_id/cancel',
    {
      schema: {
        operationId: 'cancelRun',
        summary: 'Cancel a run',
        tags: ['runs'],
        params: RunParams,
        response: { 202: Run, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params }, reply) => sendJson(reply.code(202), await engine.cancel(params.run_id.toLowerCase())),
  );
};

/** The options of a run in the headers of its request. */
export const runOptions = (headers: RunHeaders): RunOptions => ({
  ...(headers['idempotency-key'] !== undefined && { idempotency_key: headers['idempotency-key'] }),
  ...(headers['if-busy'] !== undefined && { if_busy: headers['if-busy'] }),
  ...(headers['on-disconnect'] !== undefined &&
    isOnDisconnect(headers['on-disconnect']) && { on_disconnect: headers['on-disconnect'] }),
});

/** Lists, reads, follows and deletes runs. */
export const storedRunRoutes: FastifyPluginAsyncTypebox<{ engine: Engine; responder: Responder }> = async (
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
    async ({ query }, reply) => sendJson(reply, await listRuns(engine, query)),
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
      // A HEAD request for a live stream would never end.
      exposeHeadRoute: false,
      schema: {
        operationId: 'listRunEvents',
        summary: 'Read the events of a run after a cursor; with Accept: text/event-stream, also the live ones',
        tags: ['runs'],
        params: RunParams,
        querystring: EventsQuery,
        response: {
          200: {
            description: 'The events after the cursor',
            content: {
              'application/json': { schema: RunEventsResponse },
              // The schema of a whole stream is text; each `data` in it is an Event.
              'text/event-stream': { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } },
            },
          },
          204: { description: 'stream: the run is final and has no events after the cursor', type: 'null' },
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
        response: {
          204: { description: 'the run is deleted', type: 'null' },
          404: ErrorBody,
          409: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async ({ params }, reply) => {
      await engine.remove(params.run_id.toLowerCase());
      return reply.code(204).send();
    },
  );
};

/** A page of runs as JSON. @throws RivuletError `agent_unknown` */
export async function listRuns(engine: Engine, { limit = 20, cursor, ...filter }: RunsQuery): Promise<string> {
  const { agent_name } = filter;
  // An invalid name is an unknown agent, as in all calls. A store might refuse the name.
  if (agent_name !== undefined && nameProblem(agent_name) !== undefined) {
    throw fail('agent_unknown', agent_name.slice(0, 100));
  }
  if (filter.session_id !== undefined) filter.session_id = filter.session_id.toLowerCase();
  const { runs, next } = await engine.runs(filter, cursor?.toLowerCase(), limit);
  return `{"runs":[${runs.join(',')}]${next === undefined ? '' : `,"next_cursor":"${next}"`}}`;
}

/** The header has precedence: a browser that reconnects repeats the `?after=` of its first request. */
function cursorOf({ headers }: FastifyRequest, query: string | undefined): number {
  const header = headers['last-event-id'];
  const [name, given] = header === undefined || header === '' ? ['after', query] : ['Last-Event-ID', String(header)];
  return given === undefined ? 0 : cursorIn(name, given);
}

/** @throws RivuletError `cursor_invalid` */
export function cursorIn(name: string, given: string): number {
  if (!/^\d{1,15}$/.test(given)) throw fail('cursor_invalid', name, given.slice(0, 100));
  return Number(given);
}
