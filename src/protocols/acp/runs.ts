import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Engine } from '../../engine/engine.ts';
import { isOnDisconnect } from '../../engine/runs/connected-readers.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { type Responder, sendJson } from '../../http/respond.ts';
import { RunCreateRequest, RunHeaders, RunParams, RunResumeRequest } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Run } from '../../schema/run.ts';

// What a mode answers; one object, because creating and resuming answer alike.
const modes = {
  200: {
    description: 'sync: the Run, final or awaiting. stream: its events, until then',
    content: {
      'application/json': { schema: Run },
      // A stream as a whole is text; each `data` in it is an Event.
      'text/event-stream': { schema: { type: 'string', description: 'SSE; `data` of each event is an Event' } },
    },
  },
  202: { description: 'async: the Run as it begins', content: { 'application/json': { schema: Run } } },
};

/** Runs: each answer is a reader of the same log. */
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
      const begun = await engine.create(body, runOptionsOf(headers));
      reply.header('Location', `${base}/runs/${begun.run_id}`);
      return responder.begun(reply, begun, body.mode ?? 'sync');
    },
  );

  app.post(
    '/runs/:run_id',
    {
      schema: {
        operationId: 'resumeRun',
        summary: 'Answer what an awaiting run asked',
        tags: ['runs'],
        params: RunParams,
        headers: RunHeaders,
        body: RunResumeRequest,
        response: { ...modes, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async ({ params, body, headers }, reply) => {
      responder.admit(body.mode ?? 'sync');
      const begun = await engine.resume(params.run_id.toLowerCase(), body.await_resume, runOptionsOf(headers));
      return responder.begun(reply, begun, body.mode ?? 'sync');
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

const runOptionsOf = (headers: RunHeaders): RunOptions => ({
  ...(headers['idempotency-key'] !== undefined && { idempotency_key: headers['idempotency-key'] }),
  ...(headers['if-busy'] !== undefined && { if_busy: headers['if-busy'] }),
  ...(headers['on-disconnect'] !== undefined &&
    isOnDisconnect(headers['on-disconnect']) && { on_disconnect: headers['on-disconnect'] }),
});
