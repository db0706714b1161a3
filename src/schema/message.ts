import { type Static, Type } from '@sinclair/typebox';
import { DateTime, MediaType, Uri } from './scalars.ts';

/** The source of a stretch of a message's text. Indexes count characters over its text parts. */
export const CitationMetadata = Type.Object(
  {
    kind: Type.Literal('citation'),
    start_index: Type.Optional(Type.Integer({ minimum: 0 })),
    end_index: Type.Optional(Type.Integer({ minimum: 0 })),
    url: Type.Optional(Type.String()),
    title: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
  },
  { $id: 'CitationMetadata', additionalProperties: true },
);
export type CitationMetadata = Static<typeof CitationMetadata>;

/**
 * A step of the agent, such as a tool call. A part with `tool_input` and without a result begins a call; a later one with
 * `tool_output` or `tool_error` ends it. They are one call by their `tool_call_id`, or without it by the tool.
 */
export const TrajectoryMetadata = Type.Object(
  {
    kind: Type.Literal('trajectory'),
    message: Type.Optional(Type.String()),
    tool_name: Type.Optional(Type.String()),
    tool_input: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    tool_output: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    tool_error: Type.Optional(Type.String({ description: 'why the call failed, instead of tool_output' })),
    tool_call_id: Type.Optional(Type.String({ description: 'the same for all parts of one call' })),
    started_at: Type.Optional(DateTime),
    ended_at: Type.Optional(DateTime),
  },
  { $id: 'TrajectoryMetadata', additionalProperties: true },
);
export type TrajectoryMetadata = Static<typeof TrajectoryMetadata>;

export const PartMetadata = Type.Union([CitationMetadata, TrajectoryMetadata], { $id: 'PartMetadata' });
export type PartMetadata = Static<typeof PartMetadata>;

// No `default` here: client generators would make these fields required ones.
const partFields = {
  name: Type.Optional(Type.String({ description: 'makes the part an artifact' })),
  content_type: Type.Optional(MediaType),
  content: Type.Optional(Type.String({ description: 'text, or base64 where content_encoding says so' })),
  content_encoding: Type.Optional(
    Type.Union([Type.Literal('plain'), Type.Literal('base64')], { description: 'plain where it is absent' }),
  ),
  content_url: Type.Optional(Uri),
  metadata: Type.Optional(PartMetadata),
};

/**
 * A piece of a message. With a name it is an artifact. It has `content` or `content_url`, never both. Rivulet returns
 * every part with a `content_type`. The type leaves it optional, because agents and clients write parts as well.
 */
export const MessagePart = Type.Object(partFields, {
  $id: 'MessagePart',
  description: 'a piece of a message; with a name it is an artifact',
  additionalProperties: true,
  required: ['content_type'],
});
export type MessagePart = Static<typeof MessagePart>;

/** A part as a client or an agent writes it: the content type defaults to `text/plain`. */
export const MessagePartInput = Type.Object(partFields, {
  $id: 'MessagePartInput',
  description: 'a piece of a message, with content or content_url; content_type defaults to text/plain',
  additionalProperties: true,
});

export const Role = Type.String({
  pattern: '^(user|agent(\\/[a-zA-Z0-9_\\-]+)?)$',
  description: 'user, agent or agent/{name}',
});
export type Role = Static<typeof Role>;

/**
 * Why a message is not whole. `interrupted`: its process died, and the work that said it was done again after that. `length`:
 * its model came to a limit of tokens. `content_filter`: a filter of its model's server ended it. `cancelled` and `failed`: so
 * its run ended. Only the history of a session has these two, because in a run its status says it.
 */
export const FinishReason = Type.Union(
  [
    Type.Literal('interrupted'),
    Type.Literal('length'),
    Type.Literal('content_filter'),
    Type.Literal('cancelled'),
    Type.Literal('failed'),
  ],
  { $id: 'FinishReason', description: 'why the message is not whole; absent where it is' },
);
export type FinishReason = Static<typeof FinishReason>;

/** A message as Rivulet stores and returns it. `completed_at` is null only in `message.created`. */
export const Message = Type.Object(
  {
    role: Role,
    parts: Type.Array(MessagePart),
    created_at: Type.Optional(DateTime),
    completed_at: Type.Optional(Type.Union([DateTime, Type.Null()])),
    finish_reason: Type.Optional(FinishReason),
  },
  { $id: 'Message', description: 'a message of a run or a session', additionalProperties: true },
);
export type Message = Static<typeof Message>;

/** A message as a client sends it: the role defaults to `user`, the times to now. */
export const MessageInput = Type.Object(
  {
    role: Type.Optional(Role),
    parts: Type.Array(MessagePartInput),
    created_at: Type.Optional(DateTime),
    completed_at: Type.Optional(DateTime),
  },
  {
    $id: 'MessageInput',
    description: 'a message of a request; the role defaults to user, the times to now',
    additionalProperties: true,
  },
);
export type MessageInput = Static<typeof MessageInput>;
