import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AccessOf } from '../../http/caller.ts';
import type { Responder } from '../../http/respond.ts';
import { runOptions } from '../../http/run-requests.ts';
import { RunAgainRequest, RunHeaders, RunParams } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Run } from '../../schema/run.ts';

/** Makes runs that repeat a part of another one. */
export const againRoutes: FastifyPluginAsyncTypebox<{ access: AccessOf; responder: Responder; base: string }> = async (
  app,
  { access, responder, base },
) => {
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
