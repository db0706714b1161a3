import { type Static, Type } from '@sinclair/typebox';
import { RunEventType } from './event.ts';
import { DateTime, HttpUrl, Uuid } from './scalars.ts';
import { loggedStatuses } from './statuses.ts';

export const Webhook = Type.Object(
  {
    url: HttpUrl,
    events: Type.Optional(
      Type.Array(RunEventType, {
        minItems: 1,
        maxItems: loggedStatuses.length,
        description: 'default: run.awaiting, run.completed, run.failed and run.cancelled',
      }),
    ),
  },
  {
    $id: 'Webhook',
    description: 'where to POST changes of status, signed after Standard Webhooks; GET /webhooks/secret has the secret',
  },
);
export type Webhook = Static<typeof Webhook>;

export const DeliveryState = Type.Union([Type.Literal('pending'), Type.Literal('delivered'), Type.Literal('failed')], {
  $id: 'DeliveryState',
  description: 'failed: there are no more attempts, unless it is replayed',
});
export type DeliveryState = Static<typeof DeliveryState>;

export const WebhookDelivery = Type.Object(
  {
    delivery_id: Type.String({ description: 'the header webhook-id, the same in all attempts' }),
    run_id: Uuid,
    url: Type.String(),
    type: RunEventType,
    state: DeliveryState,
    attempts: Type.Integer({ minimum: 0, description: 'attempts that have ended' }),
    created_at: DateTime,
    next_at: Type.Optional(DateTime),
    last_status: Type.Optional(Type.Integer({ description: 'the status of the last answer' })),
    last_error: Type.Optional(Type.String({ description: 'why the last attempt has failed' })),
  },
  { $id: 'WebhookDelivery', description: 'a webhook in the outbox' },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;

export const DeliveriesQuery = Type.Object({
  state: Type.Optional(DeliveryState),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  cursor: Type.Optional(Uuid),
});
export type DeliveriesQuery = Static<typeof DeliveriesQuery>;

export const DeliveriesResponse = Type.Object(
  {
    deliveries: Type.Array(WebhookDelivery, { description: 'newest first' }),
    next_cursor: Type.Optional(Type.String({ description: 'where the next page begins; absent on the last one' })),
  },
  { $id: 'DeliveriesResponse', description: 'a page of webhooks, newest first' },
);
export type DeliveriesResponse = Static<typeof DeliveriesResponse>;

export const DeliveryParams = Type.Object({ delivery_id: Uuid });
export type DeliveryParams = Static<typeof DeliveryParams>;

export const SecretQuery = Type.Object({ url: HttpUrl });
export type SecretQuery = Static<typeof SecretQuery>;

export const WebhookSecret = Type.Object(
  { secret: Type.String({ description: 'whsec_ and base64: verifies the webhooks to all URLs of the origin' }) },
  { $id: 'WebhookSecret', description: 'the secret of the caller’s webhooks to an origin' },
);
export type WebhookSecret = Static<typeof WebhookSecret>;
