import { type Static, Type } from '@sinclair/typebox';
import { DateTime } from './scalars.ts';

/** A piece of a message of a model, in the form of OpenTelemetry's GenAI conventions. */
export const ModelPart = Type.Object(
  {
    type: Type.String({ description: 'text, reasoning, tool_call, tool_call_response, uri, blob or another one' }),
    content: Type.Optional(Type.String({ description: 'of text, reasoning and blob' })),
    id: Type.Optional(Type.String({ description: 'of a tool_call and its tool_call_response' })),
    name: Type.Optional(Type.String()),
    arguments: Type.Optional(Type.Unknown()),
    response: Type.Optional(Type.Unknown()),
    mime_type: Type.Optional(Type.String()),
    uri: Type.Optional(Type.String()),
  },
  { $id: 'ModelPart', description: 'a piece of a message of a model', additionalProperties: true },
);
export type ModelPart = Static<typeof ModelPart>;

/** A message as a model gets or gives it, in the form of OpenTelemetry's GenAI conventions. */
export const ModelMessage = Type.Object(
  {
    role: Type.String({ description: 'system, user, assistant or tool' }),
    parts: Type.Array(ModelPart),
  },
  { $id: 'ModelMessage', description: 'a message as a model gets or gives it, in the form of the GenAI conventions' },
);
export type ModelMessage = Static<typeof ModelMessage>;

/** A tool that a model may call. */
export const ModelTool = Type.Object(
  {
    name: Type.String(),
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Unknown({ description: 'the JSON Schema of its input' })),
  },
  { $id: 'ModelTool', description: 'a tool that a model may call' },
);
export type ModelTool = Static<typeof ModelTool>;

const reporter = {
  at: Type.Integer({ minimum: 0, description: 'the id of the run’s last event before it' }),
  agent_name: Type.String({ description: 'the agent that reported it' }),
  path: Type.Optional(Type.String({ description: 'the calls that led to that agent' })),
};

/**
 * A call of a model that has ended. Its fields have the names of the GenAI conventions, without `gen_ai.`. Messages and tools
 * are there where the server captures content.
 */
export const ModelCall = Type.Object(
  {
    kind: Type.Literal('model_call'),
    ...reporter,
    started_at: DateTime,
    ended_at: DateTime,
    request_model: Type.String({ description: 'the model that was asked for' }),
    provider_name: Type.Optional(Type.String()),
    response_id: Type.Optional(Type.String()),
    response_model: Type.Optional(Type.String({ description: 'the model that answered' })),
    response_finish_reasons: Type.Optional(Type.Array(Type.String())),
    response_time_to_first_chunk: Type.Optional(Type.Number({ description: 'seconds' })),
    usage_input_tokens: Type.Optional(Type.Number()),
    usage_output_tokens: Type.Optional(Type.Number()),
    error: Type.Optional(Type.String({ description: 'why the call failed' })),
    input_messages: Type.Optional(Type.Array(ModelMessage)),
    tool_definitions: Type.Optional(Type.Array(ModelTool)),
    output_messages: Type.Optional(Type.Array(ModelMessage)),
    content_omitted: Type.Optional(Type.Integer({ description: 'characters of content that were too many to keep' })),
  },
  { $id: 'ModelCall', description: 'a call of a model that has ended' },
);
export type ModelCall = Static<typeof ModelCall>;

export const LogLevel = Type.Union([
  Type.Literal('debug'),
  Type.Literal('info'),
  Type.Literal('warn'),
  Type.Literal('error'),
]);
export type LogLevel = Static<typeof LogLevel>;

/** A line that an agent wrote to `context.log`. */
export const LogLine = Type.Object(
  {
    kind: Type.Literal('log'),
    ...reporter,
    logged_at: DateTime,
    level: LogLevel,
    message: Type.String(),
  },
  { $id: 'LogLine', description: 'a line that an agent wrote to context.log' },
);
export type LogLine = Static<typeof LogLine>;

/** What the search for a fault needs of a run, and none of its readers gets. */
export const Diagnostic = Type.Union([ModelCall, LogLine], {
  $id: 'Diagnostic',
  description: 'what the search for a fault needs of a run, beside its events',
});
export type Diagnostic = Static<typeof Diagnostic>;
