import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from '@sinclair/typebox';
import type { FastifyReply } from 'fastify';
import { RivuletError } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import { matchesEtag } from '../../http/requests/negotiation.ts';
import { jsonOf } from '../../http/requests/respond.ts';
import { after } from '../../http/sse/projection.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { runIdIn } from '../run-place.ts';
import { endOf } from '../turns.ts';
import { closedControl, sharedProjections, upToDateControl, withUpToDate } from './projection.ts';
import { offsetAfter, type ReadRequest, readRequestOf, wrongOffset } from './request.ts';

const route = {
  // HEAD has a route of its own: this one could wait.
  exposeHeadRoute: false,
  config: { scope: 'runs:read', ticket: true },
  schema: { hide: true, params: Type.Object({ run_id: Type.String() }) },
} as const;

/** Durable Streams, read-only: the log of a run as an open stream, which its final event closes. */
export const durableStreamRoutes: FastifyPluginAsyncTypebox<ProtocolOptions> = async (
  app,
  { access, responder, limits },
) => {
  const projectionWith = sharedProjections();

  app.head('/runs/:run_id/stream', route, async (request, reply) => {
    const end = await endOf(access(request), runIdIn(request.params.run_id));
    describe(reply, end).headers({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
    return reply.send();
  });

  app.get('/runs/:run_id/stream', route, async (request, reply) => {
    const own = access(request);
    const run_id = runIdIn(request.params.run_id);
    const read = readRequestOf(request.query);
    const seen = read.after === 'now' ? 0 : read.after;
    const end = await readFrom(seen, () => endOf(own, run_id, seen));
    const from = read.after === 'now' ? end.last : read.after;
    const hasAll = from === end.last;
    if (read.live === 'sse') {
      responder.admit(own, 'stream');
      if (hasAll && end.final) return sendClosed(reply, from);
      return responder.project(reply, own, run_id, {
        projection: projectionWith(read.cursor),
        from: after(from),
        until: 'final',
        mode: 'events',
        lead: () => (hasAll ? [upToDateControl(from, read.cursor)] : []),
        atTail: withUpToDate,
        timeout: limits.durableStreamTimeout,
        // The last control event says whether the stream is closed, so the end of a connection says nothing.
        interrupted: () => '',
      });
    }
    if (read.live === 'long-poll' && hasAll && !end.final)
      await responder.grown(limits.longPollTimeout, reply, own, run_id, from);
    return send(reply, own, run_id, { ...read, from });
  });
};

/** Reads a log from a number on. @throws RivuletError `run_unknown`, `log_removed`, `bad_request` */
async function readFrom<Read>(from: number, read: () => Promise<Read>): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof RivuletError && error.kind === 'cursor_invalid' ? wrongOffset(offsetAfter(from)) : error;
  }
}

const describe = (reply: FastifyReply, { last, final }: { last: number; final: boolean }): FastifyReply =>
  reply.headers({ 'Stream-Next-Offset': offsetAfter(last), ...(final && { 'Stream-Closed': 'true' }) });

/** All events after an offset, however many: clients that do not follow a stream ask once. */
async function send(
  reply: FastifyReply,
  own: Access,
  run_id: string,
  { from, ...read }: ReadRequest & { from: number },
): Promise<FastifyReply> {
  const log = await readFrom(from, () => own.openCursor(run_id, { after: from, until: 'now', keeps: false }));
  const last = from + log.behind;
  describe(reply, { last, final: log.final }).headers({ 'Stream-Up-To-Date': 'true', 'Stream-Cursor': read.cursor });
  if (read.live !== undefined && last === from) return reply.code(204).header('Cache-Control', 'no-store').send();
  if (read.after === 'now') reply.header('Cache-Control', 'no-store');
  else {
    // A browser may keep it, and asks each time whether it is still the caller's, and whole.
    const tag = `"${run_id}:${from}:${last}"`;
    reply.headers({ 'Cache-Control': 'private, no-cache', ETag: tag });
    if (matchesEtag(reply.request.headers['if-none-match'], tag)) return reply.code(304).send();
  }
  return reply.type('application/json').send(jsonOf(log));
}

const sendClosed = (reply: FastifyReply, from: number): FastifyReply =>
  reply.type('text/event-stream; charset=utf-8').header('Cache-Control', 'no-cache').send(closedControl(from));
