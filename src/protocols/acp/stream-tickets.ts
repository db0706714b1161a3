import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { addressWith, cookieWith, type StreamTickets } from '../../http/auth/stream-ticket.ts';
import type { AccessOf } from '../../http/requests/caller.ts';
import { RunParams, StreamTicketQuery, StreamTicketResponse } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';

interface TicketRouteOptions {
  readonly access: AccessOf;
  /** Undefined where authentication is off: then an EventSource needs no ticket. */
  readonly tickets: StreamTickets | undefined;
  readonly base: string;
}

/** Milliseconds after which a page has to ask again where nothing expires. */
const longest = 24 * 60 * 60_000;

/** Makes addresses of event streams for an EventSource, which cannot send headers. */
export const streamTicketRoutes: FastifyPluginAsyncTypebox<TicketRouteOptions> = async (
  app,
  { access, tickets, base },
) => {
  app.post(
    '/runs/:run_id/stream-ticket',
    {
      config: { scope: 'runs:read' },
      schema: {
        operationId: 'createStreamTicket',
        summary: 'Get the address of the events of a run for an EventSource',
        tags: ['runs'],
        params: RunParams,
        querystring: StreamTicketQuery,
        response: { 200: StreamTicketResponse, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async (request, reply) => {
      const run_id = request.params.run_id.toLowerCase();
      const own = access(request);
      await own.check(run_id);
      const path = `${base}/runs/${run_id}/events`;
      reply.header('Cache-Control', 'no-store');
      if (tickets === undefined) return { url: path, expires_at: new Date(Date.now() + longest).toISOString() };
      const { ticket, expires_at } = tickets.issue(own.principal, run_id);
      if (!request.query.cookie) return { url: addressWith(path, ticket), expires_at };
      reply.header('Set-Cookie', cookieWith(path, ticket));
      return { url: path, expires_at };
    },
  );
};
