import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { nameProblem } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { RunFilter } from '../../core/ports/run-lists.ts';
import type { Access } from '../../engine/access.ts';
import type { AcceptedRun } from '../../engine/runs/create.ts';
import { readsStream } from '../../http/requests/negotiation.ts';
import { jsonOf, nameRun, sendJson } from '../../http/requests/respond.ts';
import { cursorIn, lastEventIdIn, runOptions } from '../../http/requests/run-requests.ts';
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
import { Run, RunDetails, type RunMode } from '../../schema/run.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { boundsAfter, outlineOf } from '../turns.ts';
import { type Input, type Operation, operation, refusals, serve } from './operation.ts';

const tags = ['runs'];
/** Runs of a page, or of the beginning of a feed, where the query names no limit. */
const defaultLimit = 20;
/** Characters of diagnostics in one answer. */
const diagnosticsPage = 1024 * 1024;

// The schema of a whole stream is text; each `data` in it is an Event.
const eventStream = { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } };

// The responses of the modes, which creating and resuming a run share.
const modes = {
  200: {
    description: 'sync: the Run, final or awaiting. stream: its events, until the run is final or awaiting',
    content: { 'application/json': { schema: Run }, 'text/event-stream': eventStream },
  },
  202: { description: 'async: the new Run', content: { 'application/json': { schema: Run } } },
};

const runJson = ({ run }: AcceptedRun): string => run;

export const createRun = operation({
  route: 'POST /runs',
  config: { scope: 'runs:write', work: 'creates' },
  summary: 'Run an agent',
  tags,
  headers: RunHeaders,
  body: RunCreateRequest,
  response: { ...modes, ...refusals(400, 404, 409, 422, 503) },
  call: (access, { body, headers }) =>
    access.create(body, { ...runOptions(headers), repeats: repeatedAfter(headers, body.mode) !== undefined }),
  json: runJson,
});

const resumeRun = operation({
  route: 'POST /runs/:run_id',
  config: { scope: 'runs:write', work: 'resumes' },
  summary: 'Reply to an awaiting run',
  tags,
  params: RunParams,
  headers: RunHeaders,
  body: RunResumeRequest,
  response: { ...modes, ...refusals(404, 409, 422) },
  call: (access, { params, body, headers }) =>
    access.resume(params.run_id.toLowerCase(), body.await_resume, {
      ...runOptions(headers),
      repeats: repeatedAfter(headers, body.mode) !== undefined,
    }),
  json: runJson,
});

const cancelRun = operation({
  route: 'POST /runs/:run_id/cancel',
  config: { scope: 'runs:write' },
  summary: 'Cancel a run',
  tags,
  params: RunParams,
  response: { 202: Run, ...refusals(404, 409, 422) },
  call: (access, { params }) => access.cancel(params.run_id.toLowerCase()),
});

const retryRun = operation({
  ...cancelRun,
  route: 'POST /runs/:run_id/retry',
  summary: 'Try a parked run again',
  call: (access, { params }) => access.retry(params.run_id.toLowerCase()),
});

const runAgain = operation({
  route: 'POST /runs/:run_id/again',
  config: { scope: 'runs:write', work: 'creates' },
  summary: 'Run again from an event',
  tags,
  params: RunParams,
  headers: RunHeaders,
  body: RunAgainRequest,
  response: { 202: Run, ...refusals(403, 404, 409, 422, 503) },
  // A request without a body asks for the beginning.
  preValidation: async (request) => {
    request.body ??= {};
  },
  call: (access, { params, body, headers }) =>
    access.again(params.run_id.toLowerCase(), body.after ?? 0, runOptions(headers)),
  json: runJson,
});

const runsOrFeed = {
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

const runsRoute = {
  route: 'GET /runs',
  config: { scope: 'runs:read', streams: true },
  summary: 'List or watch runs, newest first',
  tags,
  query: RunsQuery,
  response: { 200: runsOrFeed, ...refusals(400, 404, 422) },
} as const;

const listRuns = operation({
  ...runsRoute,
  async call(access, { query: { limit = defaultLimit, cursor, ...query } }) {
    const { runs, next } = await access.runs(filterOf(query), cursor?.toLowerCase(), limit);
    return `{"runs":[${runs.join(',')}]${next === undefined ? '' : `,"next_cursor":"${next}"`}}`;
  },
});

/** The feed of the runs of a list, for a client that accepts a stream. The position 0 is none. */
export const watchRuns = operation({
  ...runsRoute,
  call: (access, { query: { limit = defaultLimit, cursor: _, ...query }, headers }) =>
    access.watchRuns(filterOf(query), { limit, after: lastEventId(headers)?.after || undefined }),
});

const getRun = operation({
  route: 'GET /runs/:run_id',
  config: { scope: 'runs:read' },
  summary: 'Read a run',
  tags,
  params: RunParams,
  response: { 200: RunDetails, ...refusals(404, 422) },
  call: (access, { params }) => access.details(params.run_id.toLowerCase()),
});

const listDiagnostics = operation({
  route: 'GET /runs/:run_id/diagnostics',
  config: { scope: 'runs:read' },
  summary: 'Read the model calls and log lines of a run',
  tags,
  params: RunParams,
  query: DiagnosticsQuery,
  response: { 200: DiagnosticsResponse, ...refusals(403, 404, 422) },
  async call(access, { params, query: { after = 0 } }) {
    const { diagnostics, next } = await access.diagnostics(params.run_id.toLowerCase(), after, diagnosticsPage);
    return `{"diagnostics":[${diagnostics.join(',')}]${next === undefined ? '' : `,"next":${next}`}}`;
  },
});

const deleteRun = operation({
  route: 'DELETE /runs/:run_id',
  config: { scope: 'runs:write' },
  summary: 'Delete a run',
  tags,
  params: RunParams,
  response: { 204: { description: 'the run is deleted', type: 'null' }, ...refusals(404, 409, 422) },
  call: (access, { params }) => access.remove(params.run_id.toLowerCase()),
});

/** Finds out what a reader of events asks for. */
export const listRunEvents = operation({
  route: 'GET /runs/:run_id/events',
  // A HEAD request for a live stream would never end.
  exposeHeadRoute: false,
  config: { scope: 'runs:read', ticket: true, streams: true },
  summary: 'Read or follow the events of a run',
  tags,
  params: RunParams,
  query: EventsQuery,
  response: {
    200: {
      description: 'The events after the cursor',
      content: { 'application/json': { schema: RunEventsResponse }, 'text/event-stream': eventStream },
    },
    204: { description: 'stream: the run is final and has no events after the cursor', type: 'null' },
    ...refusals(400, 404, 422),
  },
  // The last id has precedence: a browser that reconnects repeats the `?after=` of its first request.
  call: async (_access, { params, query: { after, lastEventId: last }, headers }) => ({
    run_id: params.run_id.toLowerCase(),
    cursor: lastEventId(headers) ?? { after: cursorIn(last ? 'lastEventId' : 'after', last || (after ?? '0')) },
  }),
});

/** The operations on runs that have one answer, by their ids. */
export const runOperations = {
  createRun,
  resumeRun,
  cancelRun,
  retryRun,
  runAgain,
  listRuns,
  getRun,
  listDiagnostics,
  deleteRun,
};

/** Creates, resumes, cancels, lists, watches, reads and deletes runs. */
export function runRoutes(
  app: FastifyInstance,
  { access, responder, base }: Pick<ProtocolOptions, 'access' | 'responder' | 'base'>,
): void {
  /** Answers in a mode. A client that repeats the request of a stream that broke gets the events after its cursor. */
  const begin = async (
    begins: Operation<AcceptedRun>,
    input: Input,
    mode: RunMode = 'sync',
    reply: FastifyReply,
    own: Access,
  ): Promise<FastifyReply> => {
    responder.admit(own, mode);
    const cursor = repeatedAfter(input.headers, mode);
    const begun = await begins.call(own, input);
    const { run_id, after: first } = begun;
    if (begins.config?.work === 'creates') reply.header('location', `${base}/runs/${run_id}`);
    if (cursor === undefined) return responder.respond(reply, own, begun, mode);
    nameRun(reply, run_id);
    // The events after the cursor, up to the one that settles the run after its request.
    const outline = await outlineOf(own, run_id, cursor.after);
    const { end } = boundsAfter(outline, first);
    if (end !== undefined && cursor.after >= end && cursor.after <= outline.last) return reply.code(204).send();
    const after = Math.max(cursor.after, first);
    return responder.stream(reply, own, run_id, { ...cursor, after, until: 'settled' });
  };

  const operations = { ...runOperations, listRunEvents };
  serve(app, access, operations, {
    createRun: (input, ...to) => begin(createRun, input, input.body.mode, ...to),
    resumeRun: (input, ...to) => begin(resumeRun, input, input.body.mode, ...to),
    runAgain: (input, ...to) => begin(runAgain, input, 'async', ...to),
    async listRuns(input, reply, own) {
      // A HEAD request for a feed would never end.
      if (!readsStream(reply.request)) return sendJson(reply, await listRuns.call(own, input));
      const reader = await watchRuns.call(own, input);
      return responder.pipe(reply, new Pulled(reader, () => reader.close()), changeFramesOf);
    },
    async listRunEvents(input, reply, own) {
      const { run_id, cursor } = await listRunEvents.call(own, input);
      if (readsStream(reply.request)) return responder.stream(reply, own, run_id, { ...cursor, until: 'final' });
      const events = await own.stream(run_id, { ...cursor, until: 'now', keeps: false });
      return sendJson(reply, jsonOf(events, '{"events":[', ']}'));
    },
  });
}

interface NamedCursor {
  readonly after: number;
  readonly name?: string;
}

/** The cursor of a client that repeats the request of a stream that broke. @throws RivuletError `cursor_invalid` */
const repeatedAfter = (headers: IncomingHttpHeaders, mode: RunMode | undefined): NamedCursor | undefined =>
  mode === 'stream' && headers['idempotency-key'] !== undefined ? lastEventId(headers) : undefined;

/** @throws RivuletError `cursor_invalid` */
function lastEventId(headers: IncomingHttpHeaders): NamedCursor | undefined {
  const id = lastEventIdIn({ headers });
  const name = 'Last-Event-ID';
  return id === undefined ? undefined : { after: cursorIn(name, id), name };
}

/** @throws RivuletError `agent_unknown` */
function filterOf({ agent_name, session_id, status, parked, owner }: RunsQuery): RunFilter {
  // An invalid name is an unknown agent, as in all calls. A store might refuse the name.
  if (agent_name !== undefined && nameProblem(agent_name) !== undefined) {
    throw fail('agent_unknown', agent_name.slice(0, 100));
  }
  return {
    agent_name,
    ...(session_id !== undefined && { session_id: session_id.toLowerCase() }),
    status,
    ...(parked && { parked }),
    owner,
  };
}
