import type { FastifyInstance } from 'fastify';
import type { Delivery } from '../../core/ports/outbox.ts';
import { ownerOf } from '../../core/principal.ts';
import type { WebhookSecrets } from '../../http/outbound/webhook-secrets.ts';
import type { AccessOf } from '../../http/requests/caller.ts';
import { RunParams } from '../../schema/api.ts';
import {
  DeliveriesQuery,
  DeliveriesResponse,
  DeliveryParams,
  SecretQuery,
  WebhookDelivery,
  WebhookSecret,
} from '../../schema/webhook.ts';
import { operation, refusals, serve } from './operation.ts';

const tags = ['webhooks'];

const listDeliveries = operation({
  route: 'GET /deliveries',
  config: { scope: 'runs:read' },
  summary: 'List webhooks, newest first',
  tags,
  query: DeliveriesQuery,
  response: { 200: DeliveriesResponse, ...refusals(422) },
  async call(access, { query: { state, cursor, limit = 20 } }) {
    const filter = state === undefined ? {} : { state };
    const { deliveries, next } = await access.deliveries(filter, cursor?.toLowerCase(), limit);
    return { deliveries: deliveries.map(shown), next_cursor: next };
  },
});

const listRunDeliveries = operation({
  route: 'GET /runs/:run_id/deliveries',
  config: { scope: 'runs:read' },
  summary: 'List the webhooks of a run, newest first',
  tags,
  params: RunParams,
  response: { 200: DeliveriesResponse, ...refusals(404, 422) },
  call: async (access, { params }) => ({
    deliveries: (await access.runDeliveries(params.run_id.toLowerCase())).map(shown),
  }),
});

const replayDelivery = operation({
  route: 'POST /deliveries/:delivery_id/replay',
  config: { scope: 'runs:write' },
  summary: 'Send a webhook again',
  tags,
  params: DeliveryParams,
  response: { 202: WebhookDelivery, ...refusals(404, 409, 422) },
  call: async (access, { params }) => shown(await access.replayDelivery(params.delivery_id.toLowerCase())),
});

const secretIn = (secrets: WebhookSecrets) =>
  operation({
    route: 'GET /webhooks/secret',
    config: { scope: 'runs:write' },
    summary: 'Read the secret of the webhooks to a URL',
    tags,
    query: SecretQuery,
    response: { 200: WebhookSecret, ...refusals(422) },
    call: async ({ principal }, { query }) => ({ secret: secrets.current(ownerOf(principal), query.url) }),
  });

/** The outbox of webhooks, and their secrets. */
export function webhookRoutes(
  app: FastifyInstance,
  { access, secrets }: { readonly access: AccessOf; readonly secrets: WebhookSecrets },
): void {
  serve(app, access, { listDeliveries, listRunDeliveries, replayDelivery });
  const secretOf = secretIn(secrets);
  serve(
    app,
    access,
    { getWebhookSecret: secretOf },
    {
      getWebhookSecret(input, reply, own) {
        reply.header('Cache-Control', 'no-store');
        return secretOf.call(own, input);
      },
    },
  );
}

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
