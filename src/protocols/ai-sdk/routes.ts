import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from '@sinclair/typebox';
import type { FastifyReply } from 'fastify';
import { nameProblem } from '../../core/agent.ts';
import { fail } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import { newId, sessionIdFor } from '../../engine/ids.ts';
import type { AcceptedRun, RunOptions } from '../../engine/runs/create.ts';
import { nameRun, type Responder } from '../../http/requests/respond.ts';
import { lastEventIdIn, runOptions } from '../../http/requests/run-requests.ts';
import { after, beginning, type Position } from '../../http/sse/projection.ts';
import type { StreamMode } from '../../http/traffic.ts';
import { RunHeaders } from '../../schema/api.ts';
import type { RunDetails } from '../../schema/run.ts';
import { Uuid } from '../../schema/scalars.ts';
import { answerErrors, type ProtocolOptions } from '../protocol.ts';
import { atPlace } from '../request-errors.ts';
import type { Turn } from '../turns.ts';
import { openTurnOf, positionAfter, positionAfterChunks, turnId, turnOf } from './cursors.ts';
import { followChat } from './follow-chat.ts';
import { endOf, type Open, uiStreamFor } from './projection.ts';
import { ChatBody, type ChatRequest, readChat } from './request.ts';
import { transcriptOf, wantsApprovals } from './transcript.ts';

const AgentParams = Type.Object({ agent: Type.String() });
const ChatParams = Type.Object({ agent: Type.String(), id: Type.String({ minLength: 1, maxLength: 500 }) });
const StreamQuery = Type.Object({
  approvals: Type.Optional(Type.Boolean()),
  // A string, so that an index that is no number gets the error `cursor_invalid`.
  startIndex: Type.Optional(Type.String()),
});
const TranscriptQuery = Type.Object({
  approvals: Type.Optional(Type.Boolean()),
  cursor: Type.Optional(Uuid),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
});
/** Turns of a transcript, where the query names no limit. */
const defaultTurns = 50;

/** AI SDK UI message stream. */
export const aiSdkRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, options) => {
  const { access, responder } = options;
  // A chat shows the body of a response that is no success as the text of its error.
  answerErrors(app, options, (reply, { body }) => reply.type('text/plain; charset=utf-8').send(body.message));

  app.post(
    '/:agent',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: { hide: true, params: AgentParams, querystring: StreamQuery, headers: RunHeaders, body: ChatBody },
    },
    async (request, reply) => {
      const { params, query, body, headers } = request;
      const own = access(request);
      const asked = query.approvals ?? body.approvals ?? false;
      const chat = readChat(body, asked);
      responder.admit(own, 'stream');
      const approvals = asked || (chat.kind === 'reply' && (await wantsApprovals(own, chat.run_id)));
      // A client that repeats the request of a stream that broke goes on as by GET.
      const cursor = headers['idempotency-key'] === undefined ? undefined : lastEventId(request);
      const turn = await begin(own, params.agent, chat, { ...runOptions(headers), repeats: cursor !== undefined });
      if (cursor !== undefined) {
        return streamTurn(responder, reply, own, { turn, from: cursor, approvals, joins: true, mode: 'events' });
      }
      const from = turn.after === 0 ? beginning : after(turn.after);
      return streamTurn(responder, reply, own, { turn, from, approvals, joins: false, mode: 'run' });
    },
  );

  app.get(
    '/:agent/:id/stream',
    {
      // A HEAD request for a live stream would never end.
      exposeHeadRoute: false,
      config: { scope: 'runs:read' },
      schema: { hide: true, params: ChatParams, querystring: StreamQuery },
    },
    async (request, reply) => {
      const { params, query } = request;
      const own = access(request);
      const cursor = lastEventId(request);
      const hasCursor = cursor !== undefined || query.startIndex !== undefined;
      const find = hasCursor ? turnOf : openTurnOf;
      const turn = await find(own, agentIn(params), params.id);
      if (turn === undefined && hasCursor) throw fail('run_unknown', params.id);
      if (turn === undefined) return reply.code(204).send();
      const approvals = query.approvals ?? (await wantsApprovals(own, turn.run_id));
      let from = cursor ?? beginning;
      if (cursor === undefined && query.startIndex !== undefined) {
        from = await positionAfterChunks(own, turn, query.startIndex, uiStreamFor({ approvals, joins: false }));
      }
      responder.admit(own, 'stream');
      const joins = cursor !== undefined || query.startIndex === undefined;
      return streamTurn(responder, reply, own, { turn, from, approvals, joins, mode: 'events' });
    },
  );

  app.get(
    '/:agent/:id',
    {
      config: { scope: 'runs:read' },
      schema: { hide: true, params: ChatParams, querystring: TranscriptQuery },
    },
    async (request) => {
      const { params, query } = request;
      const { cursor, limit = defaultTurns, approvals } = query;
      const own = access(request);
      const resumed = (await openTurnOf(own, agentIn(params), params.id))?.run_id;
      const before = cursor?.toLowerCase();
      return transcriptOf(own, { session_id: sessionIdFor(params.id), before, limit, resumed, approvals });
    },
  );
};

/** Makes a run of what a user has said, or gives a run its reply. */
async function begin(own: Access, agent_name: string, chat: ChatRequest, options: RunOptions): Promise<AcceptedRun> {
  const { session_id } = chat;
  if (chat.kind === 'reply') {
    await checkChat(own, agent_name, chat.run_id, session_id);
    try {
      return await own.resume(chat.run_id, chat.input, { channel: 'ai-sdk', ...options });
    } catch (error) {
      throw atPlace(error, 'output');
    }
  }
  const { message, kept, request } = chat;
  const before = newId();
  const prepare = async (cancels: boolean): Promise<void> => {
    if (session_id !== undefined && kept !== undefined) await followChat(own, session_id, kept, before, cancels);
  };
  const run = { agent_name, input: [message], session_id };
  return own.create(run, { ...options, request, prepare });
}

interface TurnStream {
  readonly turn: Turn;
  readonly from: Position;
  readonly approvals: boolean;
  /** Whether the client does not count chunks. */
  readonly joins: boolean;
  readonly mode: StreamMode;
}

function streamTurn(
  responder: Responder,
  reply: FastifyReply,
  own: Access,
  { turn, from, approvals, joins, mode }: TurnStream,
): Promise<FastifyReply> {
  const { run_id } = turn;
  nameRun(reply, run_id);
  reply.headers({
    'x-vercel-ai-ui-message-stream': 'v1',
    'x-workflow-run-id': turnId(turn),
    'x-resumable-stream-id': run_id,
  });
  // The stream of a request ends at the next question; one that is read later goes on where that has its reply.
  const until = mode === 'run' ? 'settled' : isSettled;
  const projection = uiStreamFor({ approvals, joins });
  return responder.project(reply, own, run_id, { projection, from, until, mode, end: endOf });
}

/** @throws RivuletError `cursor_invalid` */
function lastEventId(request: { headers: IncomingHttpHeaders }): Position | undefined {
  const id = lastEventIdIn(request);
  return id === undefined ? undefined : positionAfter(id);
}

const isSettled = ({ settled }: Open): boolean => settled !== undefined;

/** Not the name of a hosted agent: runs of one that is gone can be read. @throws RivuletError `agent_unknown` */
function agentIn({ agent }: Static<typeof AgentParams>): string {
  if (nameProblem(agent) !== undefined) throw fail('agent_unknown', agent.slice(0, 100));
  return agent;
}

/** A chat may only answer its own runs. @throws RivuletError `run_unknown` */
async function checkChat(own: Access, agent_name: string, run_id: string, session_id?: string): Promise<void> {
  const run: RunDetails = JSON.parse(await own.details(run_id));
  const isOther = session_id !== undefined && run.session_id !== session_id;
  if (isOther || run.agent_name !== agent_name) throw fail('run_unknown', run_id);
}
