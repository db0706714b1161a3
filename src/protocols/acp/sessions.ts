import type { FastifyInstance } from 'fastify';
import type { AccessOf } from '../../http/requests/caller.ts';
import { ErasedData, OwnerQuery, ResourceParams, SessionParams } from '../../schema/api.ts';
import { Session } from '../../schema/session.ts';
import { operation, refusals, serve } from './operation.ts';

const tags = ['sessions'];

const getSession = operation({
  route: 'GET /sessions/:session_id',
  config: { scope: 'sessions:read' },
  summary: 'Read a session',
  tags,
  params: SessionParams,
  query: OwnerQuery,
  response: { 200: Session, ...refusals(404, 422) },
  call: (access, { params, query }) => access.session(params.session_id.toLowerCase(), query.owner),
});

// The text of the public specification has the first path, and its clients use this one.
const getSessionAlias = operation({
  ...getSession,
  route: 'GET /session/:session_id',
  summary: 'Read a session, at the path that ACP clients use',
});

const deleteSession = operation({
  route: 'DELETE /sessions/:session_id',
  config: { scope: 'sessions:write' },
  summary: 'Delete a session',
  tags,
  params: SessionParams,
  query: OwnerQuery,
  response: { 204: { description: 'the session is deleted', type: 'null' }, ...refusals(404, 409, 422) },
  call: (access, { params, query }) => access.removeSession(params.session_id.toLowerCase(), query.owner),
});

const getResource = operation({
  route: 'GET /resources/:resource_id',
  config: { scope: 'sessions:read' },
  summary: 'Read a stored message or state',
  tags,
  params: ResourceParams,
  response: {
    200: { description: 'the stored text', content: { '*/*': { schema: { type: 'string' } } } },
    ...refusals(404, 422),
  },
  call: (access, { params }) => access.resource(params.resource_id.toLowerCase()),
  json: ({ body }) => body,
});

const erasePrincipal = operation({
  route: 'DELETE /principals/me/data',
  config: { scope: 'sessions:write' },
  summary: 'Erase all runs, sessions and other data of the caller',
  tags: ['service'],
  query: OwnerQuery,
  response: { 200: ErasedData, ...refusals(409, 422) },
  call: (access, { query }) => access.erase(query.owner),
});

/** The operations on sessions, the messages and states to which their URLs point, and all data of a caller. */
export const sessionOperations = { getSession, getSessionAlias, deleteSession, getResource, erasePrincipal };

export const sessionRoutes = (app: FastifyInstance, { access }: { readonly access: AccessOf }): void =>
  serve(app, access, sessionOperations, {
    async getResource(input, reply, own) {
      const { content_type, body } = await getResource.call(own, input);
      return reply.type(content_type).send(body);
    },
  });
