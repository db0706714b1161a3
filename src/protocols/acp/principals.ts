import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AccessOf } from '../../http/caller.ts';
import { ErasedData, OwnerQuery } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';

/** What a caller has as a whole. */
export const principalRoutes: FastifyPluginAsyncTypebox<{ access: AccessOf }> = async (app, { access }) => {
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
