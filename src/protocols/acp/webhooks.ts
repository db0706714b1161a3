import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Delivery } from '../../core/ports/outbox.ts';
import { ownerOf } from '../../core/principal.ts';
import type { WebhookSecrets } from '../../http/outbound/webhook-secrets.ts';
import type { AccessOf } from '../../http/requests/caller.ts';
import { RunParams } from '../../schema/api.ts';
import { ErrorBody } from '../../schema/error.ts';
import {
  DeliveriesQuery,
  DeliveriesResponse,
  DeliveryParams,
  SecretQuery,
  WebhookDelivery,
  WebhookSecret,
} from '../../schema/webhook.ts';

const tags = ['webhooks'];

/** The outbox of webhooks, and their secrets. */
export const webhookRoutes: FastifyPluginAsyncTypebox<{ access: AccessOf; secrets: WebhookSecrets }> = async (
  app,
  { access, secrets },
) => {
  app.get(
    '/deliveries',
    {
      config: { scope: 'runs:read' },
      schema: {
        operationId: 'listDeliveries',
        summary: 'List webhooks, newest first',
        tags,
        querystring: DeliveriesQuery,
        response: { 200: DeliveriesResponse, 422: ErrorBody },
      },
    },
    async (request) => {
      const { state, cursor, limit = 20 } = request.query;
      const { deliveries, next } = await access(request).deliveries(
        state === undefined ? {} : { state },
        cursor?.toLowerCase(),
        limit,
      );
      return { deliveries: deliveries.map(shown), next_cursor: next };
    },
  );

  app.get(
    '/runs/:run_id/deliveries',
    {
      config: { scope: 'runs:read' },
      schema: {
        operationId: 'listRunDeliveries',
        summary: 'List the webhooks of a run, newest first',
        tags,
        params: RunParams,
        response: { 200: DeliveriesResponse, 404: ErrorBody, 422: ErrorBody },
      },
    },
    async (request) => {
      const found = await access(request).runDeliveries(request.params.run_id.toLowerCase());
      return { deliveries: found.map(shown) };
    },
  );

  app.post(
    '/deliveries/:delivery_id/replay',
    {
      config: { scope: 'runs:write' },
      schema: {
        operationId: 'replayDelivery',
        summary: 'Send a webhook again',
        tags,
        params: DeliveryParams,
        response: { 202: WebhookDelivery, 404: ErrorBody, 409: ErrorBody, 422: ErrorBody },
      },
    },
    async (request, reply) => {
      const delivery = await access(request).replayDelivery(request.params.delivery_id.toLowerCase());
      return reply.code(202).send(shown(delivery));
    },
  );

  app.get(
    '/webhooks/secret',
    {
      config: { scope: 'runs:write' },
      schema: {
        operationId: 'getWebhookSecret',
        summary: 'Read the secret of the webhooks to a URL',
        tags,
        querystring: SecretQuery,
        response: { 200: WebhookSecret, 422: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.header('Cache-Control', 'no-store');
      return { secret: secrets.current(ownerOf(access(request).principal), request.query.url) };
    },
  );
};

// The types of stored deliveries are those of `RunEventType`.
const shown = ({ delivery_id, run_id, url, type, state, attempt, created_at, ...rest }: Delivery): WebhookDelivery => ({
  delivery_id,
  run_id,
  url,
  type: type as WebhookDelivery['type'],
  state,
  attempts: attempt,
  created_at,
  ...(state === 'pending' && { next_at: rest.next_at }),
  ...(rest.last_status !== null && { last_status: rest.last_status }),
  ...(rest.last_error !== null && { last_error: rest.last_error }),
});
