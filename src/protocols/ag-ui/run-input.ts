import { type Static, Type } from '@sinclair/typebox';
import { open } from '../../core/validate.ts';
import { MediaType, Uri } from '../../schema/scalars.ts';

// What an AG-UI client posts. Fields that are not here are ignored: the next version of the protocol has more of them.
// The limits of a body bound the lists.

const id = Type.String({ minLength: 1, maxLength: 255 });

const Source = Type.Union([
  open({ type: Type.Literal('data'), value: Type.String(), mimeType: Type.Optional(MediaType) }),
  open({ type: Type.Literal('url'), value: Uri, mimeType: Type.Optional(MediaType) }),
  /** Bytes that only the provider of a model can read. */
  open({ type: Type.Literal('file'), value: Type.String() }),
]);
export type Source = Static<typeof Source>;

/** A part of a message. The last four fields are those of `binary`, which clients before 1.0 send for files. */
const Part = open({
  type: Type.String(),
  text: Type.Optional(Type.String()),
  source: Type.Optional(Source),
  mimeType: Type.Optional(MediaType),
  data: Type.Optional(Type.String()),
  url: Type.Optional(Uri),
  filename: Type.Optional(Type.String()),
});
export type Part = Static<typeof Part>;

const ToolCall = open({ id, function: open({ name: Type.String(), arguments: Type.String() }) });

const Said = open({
  id: Type.String(),
  role: Type.Union(['user', 'assistant', 'tool', 'system', 'developer', 'reasoning'].map((role) => Type.Literal(role))),
  content: Type.Optional(Type.Union([Type.String(), Type.Array(Part)])),
  toolCalls: Type.Optional(Type.Array(ToolCall)),
  toolCallId: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  /** Since 1.0. */
  metadata: Type.Optional(Type.Unknown()),
});
export type Said = Static<typeof Said>;

/** What the client draws for itself. */
const Activity = open({ id: Type.String(), role: Type.Literal('activity') });

const Tool = open({
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(Type.Unknown()),
});

const ResumeEntry = open({
  interruptId: Type.String(),
  status: Type.Union([Type.Literal('resolved'), Type.Literal('cancelled')]),
  payload: Type.Optional(Type.Unknown()),
});
export type ResumeEntry = Static<typeof ResumeEntry>;

/** The body of a request for a run. */
export const RunAgentInput = open({
  threadId: Type.String({ minLength: 1, maxLength: 1_000 }),
  runId: id,
  /** Sent since 1.0. */
  protocolVersion: Type.Optional(Type.String()),
  parentRunId: Type.Optional(Type.String()),
  state: Type.Optional(Type.Unknown()),
  messages: Type.Array(Type.Union([Said, Activity])),
  tools: Type.Optional(Type.Array(Tool)),
  context: Type.Optional(Type.Array(open({ description: Type.String(), value: Type.String() }))),
  forwardedProps: Type.Optional(Type.Unknown()),
  resume: Type.Optional(Type.Array(ResumeEntry)),
});
export type RunAgentInput = Static<typeof RunAgentInput>;

export const isSaid = (message: RunAgentInput['messages'][number]): message is Said => message.role !== 'activity';

/** Whether a client reads what 1.0 has added; clients before it refuse a field or an event that they do not know. */
export const isModern = (protocolVersion: unknown): boolean =>
  typeof protocolVersion === 'string' && /^[1-9]\d*\.\d+$/.test(protocolVersion);
