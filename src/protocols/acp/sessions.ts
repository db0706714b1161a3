import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AccessOf } from '../../http/requests/caller.ts';
import { ErasedData, OwnerQuery, ResourceParams, SessionParams } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import { Session } from '../../schema/session.ts';

/** Sessions, the messages and states to which their URLs point, and all data of a caller. */
export const sessionRoutes: FastifyPluginAsyncTypebox<{ access: AccessOf }> = async (app, { access }) => {
  // Two paths: the text of the public specification has one, and its clients use the other.
  for (const [url, operationId, summary] of [
    ['/sessions/:session_id', 'getSession', 'Read a session'],
    ['/session/:session_id', 'getSessionAlias', 'Read a session, at the path that ACP clients use'],
  ] as const) {
    app.get(
      url,
      {
        config: { scope: 'sessions:read' },
        schema: {
          operationId,
          summary,
          tags: ['sessions'],
          params: SessionParams,
          querystring: OwnerQuery,
          response: { 200: Session, 404: ErrorBody, 422: ErrorBody },
        },
      },
      (request) => access(request).session(request.params.session_id.toLowerCase(), request.query.owner),
    );
  }

  app.delete(
    '/sessions/:session_id',
    {
      config: { scope: 'sessions:write' },
      schema: {
        operationId: 'deleteSession',
        summary: 'Delete a session',
        tags: ['sessions'],
        params: SessionParams,
        querystring: OwnerQuery,
        response: {
          204: { description: 'the session is deleted', type: 'null' },
          404: ErrorBody,
          409: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      await access(request).removeSession(request.params.session_id.toLowerCase(), request.query.owner);
      return reply.code(204).send();
    },
  );

  app.get(
    '/resources/:resource_id',
    {
      config: { scope: 'sessions:read' },
      schema: {
        operationId: 'getResource',
        summary: 'Read a stored message or state',
        tags: ['sessions'],
        params: ResourceParams,
        response: {
          200: { description: 'the stored text', content: { '*/*': { schema: { type: 'string' } } } },
          404: ErrorBody,
          422: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { content_type, body } = await access(request).resource(request.params.resource_id.toLowerCase());
      return reply.type(content_type).send(body);
    },
  );

  app.delete(
    '/principals/me/data',
    {
      config: { scope: 'sessions:write' },
      schema: {
        operationId: 'erasePrincipal',
        summary: 'Erase all runs, sessions and other data of the caller',
        tags: ['service'],
        querystring: OwnerQuery,
        response: { 200: ErasedData, 409: ErrorBody, 422: ErrorBody },
      },
    },
    (request) => access(request).erase(request.query.owner),
  );
};
