import { type Static, Type } from '@sinclair/typebox';
import { open } from '../../core/validate.ts';
import { HttpUrl, MediaType, Uri } from '../../schema/scalars.ts';

// What A2A clients send. Fields that are not here are named in a warning: the next version of the protocol has more of
// them. An empty text counts as an absent one, as in Protocol Buffers.

const id = Type.String({ minLength: 1, maxLength: 255 });
const optionalId = Type.Optional(Type.String({ maxLength: 255 }));
const contextId = Type.Optional(Type.String({ maxLength: 1_000 }));
const Metadata = Type.Optional(Type.Record(Type.String(), Type.Unknown()));
const Texts = Type.Optional(Type.Array(Type.String({ maxLength: 1_000 }), { maxItems: 100 }));
export const tenant = Type.Optional(Type.String({ maxLength: 255 }));
const historyLength = Type.Optional(Type.Integer({ minimum: 0 }));

/** It has one of `text`, `raw` (base64), `url` and `data`. */
const Part = open({
  text: Type.Optional(Type.String()),
  raw: Type.Optional(Type.String()),
  url: Type.Optional(Uri),
  data: Type.Optional(Type.Unknown()),
  metadata: Metadata,
  filename: Type.Optional(Type.String({ maxLength: 255 })),
  mediaType: Type.Optional(Type.Union([Type.Literal(''), MediaType])),
});
export type Part = Static<typeof Part>;

const Message = open({
  messageId: id,
  contextId,
  taskId: optionalId,
  role: Type.Literal('ROLE_USER'),
  parts: Type.Array(Part, { minItems: 1, maxItems: 1_000 }),
  metadata: Metadata,
  extensions: Texts,
  referenceTaskIds: Texts,
});

/** What a header may have. */
const secret = (maxLength: number) =>
  Type.String({ maxLength, pattern: '^[\\x21-\\x7e]*( [\\x21-\\x7e]+)*$', description: 'printable ASCII characters' });

/** Deliveries name their config: PostgreSQL and SQLite refuse or change NUL and half a surrogate pair. */
const newConfigId = Type.String({
  maxLength: 255,
  pattern: '^([^\\x00-\\x1f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])*$',
  description: 'a text without control characters and unpaired surrogates',
});

/** A push notification config. A new task's has no `taskId` yet. */
export const PushConfig = open({
  id: Type.Optional(newConfigId),
  taskId: optionalId,
  url: HttpUrl,
  token: Type.Optional(secret(2_048)),
  authentication: Type.Optional(
    open({
      scheme: Type.String({
        pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]*$",
        maxLength: 64,
        description: 'an HTTP authentication scheme, such as Bearer',
      }),
      credentials: Type.Optional(secret(8_192)),
    }),
  ),
});
export type PushConfig = Static<typeof PushConfig>;

export const SendMessageRequest = open({
  tenant,
  message: Message,
  configuration: Type.Optional(
    open({
      acceptedOutputModes: Texts,
      historyLength,
      returnImmediately: Type.Optional(Type.Boolean()),
      taskPushNotificationConfig: Type.Optional(PushConfig),
    }),
  ),
  metadata: Metadata,
});
export type SendMessageRequest = Static<typeof SendMessageRequest>;

/** A request that names a task. */
export const TaskRequest = open({ tenant, id: Type.String({ minLength: 1 }), historyLength });
export type TaskRequest = Static<typeof TaskRequest>;

/** A request for the extended card. */
export const CardRequest = open({ tenant });

const TaskState = Type.Union(
  (
    [
      'TASK_STATE_UNSPECIFIED',
      'TASK_STATE_SUBMITTED',
      'TASK_STATE_WORKING',
      'TASK_STATE_COMPLETED',
      'TASK_STATE_FAILED',
      'TASK_STATE_CANCELED',
      'TASK_STATE_REJECTED',
      'TASK_STATE_INPUT_REQUIRED',
      'TASK_STATE_AUTH_REQUIRED',
    ] as const
  ).map((state) => Type.Literal(state)),
);
export const ListTasksRequest = open({
  tenant,
  contextId,
  status: Type.Optional(TaskState),
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  pageToken: Type.Optional(Type.String({ maxLength: 200 })),
  historyLength,
  statusTimestampAfter: Type.Optional(Type.String({ maxLength: 50 })),
  includeArtifacts: Type.Optional(Type.Boolean()),
});
export type ListTasksRequest = Static<typeof ListTasksRequest>;
