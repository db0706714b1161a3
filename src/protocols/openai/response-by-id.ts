import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from '@sinclair/typebox';
import { fail, RivuletError } from '../../core/errors.ts';
import { sendJson } from '../../http/requests/respond.ts';
import { cursorIn } from '../../http/requests/run-requests.ts';
import type { ProjectedStream } from '../../http/sse/projected-stream.ts';
import type { Position } from '../../http/sse/projection.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { startOf } from '../turns.ts';
import { errorFrame } from './errors.ts';
import { framesPerEvent, turnOfResponse } from './ids.ts';
import { inputItems } from './input-items.ts';
import { isOver } from './response-object.ts';
import type { ResponsesState } from './responses-projection.ts';
import { projectedRun, readResponse } from './stored-responses.ts';

const Params = Type.Object({ id: Type.String() });
const hide = true;
const writes = { scope: 'runs:write' } as const;
const reads = { scope: 'runs:read' } as const;

/** Reads responses and their streams. */
export const responseReading: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, { access, responder }) => {
  app.get(
    '/responses/:id',
    {
      // A HEAD request for a stream would never end.
      exposeHeadRoute: false,
      config: reads,
      schema: {
        hide,
        params: Params,
        querystring: Type.Object({
          stream: Type.Optional(Type.String()),
          starting_after: Type.Optional(Type.String()),
        }),
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const own = access(request);
      if (request.query.stream !== 'true') return sendJson(reply, (await readResponse(own, id)).object);
      const { run_id } = turnOfResponse(id);
      responder.admit(own, 'stream');
      const { projection } = await projectedRun(own, run_id);
      try {
        const place = placeIn(id, request.query.starting_after);
        return await responder.project(reply, own, run_id, {
          ...place,
          projection,
          mode: 'events',
          interrupted: errorFrame,
        });
      } catch (error) {
        // The number of an event that this run does not have.
        const isBeyond = error instanceof RivuletError && error.kind === 'cursor_invalid';
        if (!isBeyond) throw error;
        const { starting_after } = request.query;
        throw starting_after === undefined
          ? fail('run_unknown', id)
          : fail('cursor_invalid', 'starting_after', starting_after.slice(0, 100));
      }
    },
  );

  app.get(
    '/responses/:id/input_items',
    {
      config: reads,
      schema: {
        hide,
        params: Params,
        querystring: Type.Object({
          after: Type.Optional(Type.String()),
          limit: Type.Integer({ default: 20, minimum: 1, maximum: 100 }),
          order: Type.Union([Type.Literal('asc'), Type.Literal('desc')], { default: 'desc' }),
        }),
      },
    },
    async (request, reply) => {
      const own = access(request);
      const { id } = request.params;
      await readResponse(own, id);
      return sendJson(reply, await inputItems(own, turnOfResponse(id), request.query));
    },
  );
};

/** Cancels and deletes responses. */
export const responseEnding: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, { access, responder }) => {
  app.post('/responses/:id/cancel', { config: writes, schema: { hide, params: Params } }, async (request, reply) => {
    const own = access(request);
    const { id } = request.params;
    const { run_id, last } = await readResponse(own, id);
    try {
      await own.cancel(run_id);
      const { projection } = await projectedRun(own, run_id);
      await responder.settledState(reply, own, run_id, projection, { after: last, until: 'final' });
    } catch (error) {
      // It has ended meanwhile, or before: it is what it is.
      if (!(error instanceof RivuletError && error.kind === 'already_final')) throw error;
    }
    return sendJson(reply, (await readResponse(own, id)).object);
  });

  app.delete('/responses/:id', { config: writes, schema: { hide, params: Params } }, async (request, reply) => {
    const own = access(request);
    const { id } = request.params;
    const { run_id } = await readResponse(own, id);
    await own.remove(run_id);
    return sendJson(reply, JSON.stringify({ id, object: 'response', deleted: true }));
  });
};

/** Where a stream of a response begins, and the check that the place is one of that response. */
function placeIn(
  id: string,
  starting_after: string | undefined,
): Pick<ProjectedStream<ResponsesState>, 'from' | 'lead'> {
  const from = positionIn(id, starting_after);
  const isFirst = from.event === 0;
  return {
    from,
    lead: ({ response }, left) => {
      const isEmpty = response !== undefined && isOver(response) && left.length === 0;
      if (isFirst || (response?.id === id && !isEmpty)) return [];
      throw starting_after === undefined
        ? fail('run_unknown', id)
        : fail('cursor_invalid', 'starting_after', starting_after);
    },
  };
}

/** @throws RivuletError `cursor_invalid` */
function positionIn(id: string, starting_after: string | undefined): Position {
  if (starting_after !== undefined) {
    const number = cursorIn('starting_after', starting_after);
    const event = Math.floor(number / framesPerEvent);
    if (event === 0) throw fail('cursor_invalid', 'starting_after', starting_after);
    return { event, frames: (number % framesPerEvent) + 1 };
  }
  return startOf(turnOfResponse(id));
}
