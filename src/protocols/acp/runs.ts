import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from '../../engine/access.ts';
import type { AcceptedRun, RunOptions } from '../../engine/runs/create.ts';
import { readsStream } from '../../http/requests/negotiation.ts';
import { jsonOf, nameRun, type Responder, sendJson } from '../../http/requests/respond.ts';
import {
  cursorIn,
  feedOf,
  lastEventIdIn,
  listDiagnostics,
  listRuns,
  runOptions,
} from '../../http/requests/run-requests.ts';
import { changeFramesOf } from '../../http/sse/frames.ts';
import { Pulled } from '../../http/sse/pulled.ts';
import {
  DiagnosticsQuery,
  DiagnosticsResponse,
  EventsQuery,
  RunAgainRequest,
  RunCreateRequest,
  RunEventsResponse,
  RunHeaders,
  RunParams,
  RunResumeRequest,
  RunsQuery,
  RunsResponse,
} from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Run, RunDetails, type RunMode } from '../../schema/run.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { boundsAfter, outlineOf } from '../turns.ts';

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

/** Calls that have no body, and answer with the Run. */
const changes = [
  ['cancel', 'Cancel a run'],
  ['retry', 'Try a parked run again'],
] as const;

type RunRouteOptions = Pick<ProtocolOptions, 'access' | 'responder' | 'base'>;

/** Creates, resumes and cancels runs, and tries parked ones again. */
export const runRoutes: FastifyPluginAsyncTypebox<RunRouteOptions> = async (app, { access, responder, base }) => {
  /** Begins a run, or goes on with one, and answers in the mode of the request. */
  const answer = async (
    request: FastifyRequest & { headers: RunHeaders; body: { mode?: RunMode } },
    reply: FastifyReply,
    begin: (own: Access, options: RunOptions) => Promise<AcceptedRun>,
  ): Promise<FastifyReply> => {
    const { mode = 'sync' } = request.body;
    const own = access(request);
    responder.admit(own, mode);
    const cursor = repeatedAfter(request);
    const begun = await begin(own, { ...runOptions(request.headers), repeats: cursor !== undefined });
    if (cursor !== undefined) return goOn(responder, reply, own, begun, cursor);
    return responder.respond(reply, own, begun, mode);
  };

  app.post(
    '/runs',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: {
        operationId: 'createRun',
        summary: 'Run an agent',
        tags: ['runs'],
        headers: RunHeaders,
        body: RunCreateRequest,
        response: { ...modes, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) =>
      answer(request, reply, async (own, options) => {
        const begun = await own.create(request.body, options);
        reply.header('location', `${base}/runs/${begun.run_id}`);
        return begun;
      }),
  );

  app.post(
    '/runs/:run_id',
    {
      config: { scope: 'runs:write', work: 'resumes' },
      schema: {
        operationId: 'resumeRun',
        summary: 'Reply to an awaiting run',
        tags: ['runs'],
        params: RunParams,
        headers: RunHeaders,
        body: RunResumeRequest,
        response: { ...modes, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async (request, reply) =>
      answer(request, reply, (own, options) =>
        own.resume(request.params.run_id.toLowerCase(), request.body.await_resume, options),
      ),
  );

  for (const [call, summary] of changes) {
    app.post(
      `/runs/:run_id/${call}`,
      {
        config: { scope: 'runs:write' },
        schema: {
          operationId: `${call}Run`,
          summary,
          tags: ['runs'],
          params: RunParams,
          response: { 202: Run, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
        },
      },
      async (request, reply) =>
        sendJson(reply.code(202), await access(request)[call](request.params.run_id.toLowerCase())),
    );
  }
};

const listOrFeed = {
  description: 'A page of runs; stream: the newest runs, then each run whose status changes',
  content: {
    'application/json': { schema: RunsResponse },
    'text/event-stream': {
      schema: {
        type: 'string',
        description:
          'SSE; `data` of an event `run` is `{"run": RunSummary}`, the state of a run, which replaces an earlier one; ' +
          'one that does not match the filter has matched before. `ready` follows the states of the beginning. ' +
          '`reset` says that changes may be missing: the newest runs and `ready` follow. Send the last id as Last-Event-ID.',
      },
    },
  },
};

const eventsOrStream = {
  description: 'The events after the cursor',
  content: {
    'application/json': { schema: RunEventsResponse },
    // The schema of a whole stream is text; each `data` in it is an Event.
    'text/event-stream': { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } },
  },
};

/** Lists, watches, reads and deletes runs. */
export const storedRunRoutes: FastifyPluginAsyncTypebox<RunRouteOptions> = async (app, { access, responder }) => {
  app.get(
    '/runs',
    {
      config: { scope: 'runs:read', streams: true },
      schema: {
        operationId: 'listRuns',
        summary: 'List or watch runs, newest first',
        tags: ['runs'],
        querystring: RunsQuery,
        response: {
          200: listOrFeed,
          400: ErrorBody,
          404: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      // A HEAD request for a feed would never end.
      if (!readsStream(request)) {
        return sendJson(reply, await listRuns(access(request), request.query));
      }
      const feed = feedOf(request.query, lastEventId(request)?.after ?? 0);
      const reader = await access(request).watchRuns(...feed);
      return responder.pipe(reply, new Pulled(reader, () => reader.close()), changeFramesOf);
    },
  );

  app.get(
    '/runs/:run_id',
    {
      config: { scope: 'runs:read' },
      schema: {
        operationId: 'getRun',
        summary: 'Read a run',
        tags: ['runs'],
        params: RunParams,
        response: { 200: RunDetails, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async (request, reply) => sendJson(reply, await access(request).details(request.params.run_id.toLowerCase())),
  );

  app.get(
    '/runs/:run_id/diagnostics',
    {
      config: { scope: 'runs:read' },
      schema: {
        operationId: 'listDiagnostics',
        summary: 'Read the model calls and log lines of a run',
        tags: ['runs'],
        params: RunParams,
        querystring: DiagnosticsQuery,
        response: { 200: DiagnosticsResponse, 403: ErrorBody, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      return sendJson(reply, await listDiagnostics(access(request), params.run_id.toLowerCase(), query.after));
    },
  );

  app.delete(
    '/runs/:run_id',
    {
      config: { scope: 'runs:write' },
      schema: {
        operationId: 'deleteRun',
        summary: 'Delete a run',
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
    async (request, reply) => {
      await access(request).remove(request.params.run_id.toLowerCase());
      return reply.code(204).send();
    },
  );
};

/** Reads and follows the events of runs. */
export const eventRoutes: FastifyPluginAsyncTypebox<RunRouteOptions> = async (app, { access, responder }) => {
  app.get(
    '/runs/:run_id/events',
    {
      // A HEAD request for a live stream would never end.
      exposeHeadRoute: false,
      config: { scope: 'runs:read', ticket: true, streams: true },
      schema: {
        operationId: 'listRunEvents',
        summary: 'Read or follow the events of a run',
        tags: ['runs'],
        params: RunParams,
        querystring: EventsQuery,
        response: {
          200: eventsOrStream,
          204: { description: 'stream: the run is final and has no events after the cursor', type: 'null' },
          400: ErrorBody,
          404: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const run_id = request.params.run_id.toLowerCase();
      const { after, lastEventId } = request.query;
      const cursor = cursorOf(request, after, lastEventId);
      const own = access(request);
      if (readsStream(request)) return responder.stream(reply, own, run_id, { ...cursor, until: 'final' });
      const events = await own.stream(run_id, { ...cursor, until: 'now', keeps: false });
      return sendJson(reply, jsonOf(events, '{"events":[', ']}'));
    },
  );
};

interface NamedCursor {
  readonly after: number;
  readonly name?: string;
}

/** The cursor of a client that repeats the request of a stream that broke. @throws RivuletError `cursor_invalid` */
const repeatedAfter = (request: { headers: RunHeaders; body: { mode?: RunMode } }): NamedCursor | undefined =>
  request.body.mode === 'stream' && request.headers['idempotency-key'] !== undefined ? lastEventId(request) : undefined;

/** The events after a cursor, up to the one that settles the run after its request; 204 where the client has that. */
async function goOn(
  responder: Responder,
  reply: FastifyReply,
  own: Access,
  { run_id, after: first }: AcceptedRun,
  cursor: NamedCursor,
): Promise<FastifyReply> {
  nameRun(reply, run_id);
  const outline = await outlineOf(own, run_id, cursor.after);
  const { end } = boundsAfter(outline, first);
  if (end !== undefined && cursor.after >= end && cursor.after <= outline.last) return reply.code(204).send();
  const after = Math.max(cursor.after, first);
  return responder.stream(reply, own, run_id, { ...cursor, after, until: 'settled' });
}

/** The last id has precedence: a browser that reconnects repeats the `?after=` of its first request. */
const cursorOf = (request: Pick<FastifyRequest, 'headers'>, after = '0', lastId?: string): NamedCursor =>
  lastEventId(request) ?? { after: cursorIn(lastId ? 'lastEventId' : 'after', lastId || after) };

/** @throws RivuletError `cursor_invalid` */
function lastEventId(request: { headers: IncomingHttpHeaders }): NamedCursor | undefined {
  const id = lastEventIdIn(request);
  const name = 'Last-Event-ID';
  return id === undefined ? undefined : { after: cursorIn(name, id), name };
}

/** Makes runs that repeat a part of another one. */
export const againRoutes: FastifyPluginAsyncTypebox<RunRouteOptions> = async (app, { access, responder, base }) => {
  app.post(
    '/runs/:run_id/again',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: {
        operationId: 'runAgain',
        summary: 'Run again from an event',
        tags: ['runs'],
        params: RunParams,
        headers: RunHeaders,
        body: RunAgainRequest,
        response: { 202: Run, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody, 503: ErrorBody },
      },
      // A request without a body asks for the beginning.
      preValidation: async (request) => {
        request.body ??= {};
      },
    },
    async (request, reply) => {
      const { params, body, headers } = request;
      const own = access(request);
      const begun = await own.again(params.run_id.toLowerCase(), body.after ?? 0, runOptions(headers));
      reply.header('location', `${base}/runs/${begun.run_id}`);
      return responder.respond(reply, own, begun, 'async');
    },
  );
};
